package kernel

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGenerated writes the assembly anew and compares it with what is committed. The generators need
// avo, which the program itself does not: where it is not in the module cache the test skips.
func TestGenerated(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("skipped: no go command")
	}
	for _, g := range []struct{ generator, assembly, stubs string }{
		{"./vector", "vector_amd64.s", "vector_amd64.go"},
		{"./vector -wide", "vector_avx512_amd64.s", "vector_avx512_amd64.go"},
		{"./matmul", "matmul_amd64.s", "matmul_stub_amd64.go"},
		{"./matmul -set avx512", "matmul_avx512_amd64.s", "matmul_stub512_amd64.go"},
		{"./matmul -set wide", "matmul_wide_amd64.s", "matmul_wide_stub_amd64.go"},
		{"./matmul -set group", "matmul_group_amd64.s", "matmul_group_stub_amd64.go"},
		{"./matmul -set iq", "matmul_iq_amd64.s", "matmul_iq_stub_amd64.go"},
		{"./matmul -set iq512", "matmul_iq512_amd64.s", "matmul_iq512_stub_amd64.go"},
		{"./neon", "neon_arm64.s", "neon_stub_arm64.go"},
		{"./peak", "peak_amd64.s", "peak_stub_amd64.go"},
		{"./peak -arch arm64", "peak_arm64.s", "peak_stub_arm64.go"},
	} {
		dir := t.TempDir()
		assembly, stubs := filepath.Join(dir, "out.s"), filepath.Join(dir, "out.go")
		args := append([]string{"run"}, strings.Fields(g.generator)...)
		cmd := exec.Command(goTool, append(args, "-out", assembly, "-stubs", stubs, "-pkg", "kernel")...)
		cmd.Dir = "gen"
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off", "GOOS=", "GOARCH=") // tests of another processor run this one's generator
		if out, err := cmd.CombinedOutput(); err != nil {
			if strings.Contains(string(out), "GOPROXY=off") {
				t.Skip("skipped: avo is not in the module cache (cd internal/kernel/gen && go mod download)")
			}
			t.Fatalf("%s: %v\n%s", g.generator, err, out)
		}
		sameFile(t, g.assembly, assembly)
		sameFile(t, g.stubs, stubs)
	}
}

// sameFile compares two files but for the first line, which names the command with its paths.
func sameFile(t *testing.T, committed, made string) {
	t.Helper()
	var body [2][]byte
	for i, name := range []string{committed, made} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, body[i], _ = bytes.Cut(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"))
	}
	if !bytes.Equal(body[0], body[1]) {
		t.Errorf("%s is not what its generator writes: run it again (see internal/kernel/gen)", committed)
	}
}
