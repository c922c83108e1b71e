package captest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/captest"
)

// TestCapProbe: what probe writes, to its file and to files beside it, is page cache that the kernel
// counts; all of it is several times the cap.
func TestCapProbe(t *testing.T) {
	const memory = 40 * mib
	const tokens = 3000
	bin := needProgram(t)
	dir := t.TempDir()
	model, out := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "p.safetensors")
	run := func(args ...string) captest.Result {
		ctx, cancel := context.WithTimeout(t.Context(), runTime)
		defer cancel()
		res, err := captest.Run{Cold: []string{bin}, Path: bin, Args: args}.Do(ctx)
		if err != nil || res.Exit != 0 {
			t.Fatalf("%.60v: %v, exit %d: %s", args, err, res.Exit, res.Stderr)
		}
		return res
	}
	run("synth", "toy", "--type", "q4_0", "--context", "4096", "--out", model)
	ids := strings.Repeat("5,", tokens-1) + "5"
	res := run("probe", model, "--ids", ids, "--taps", "all", "--out", out, "--memory", fmt.Sprint(memory))
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak %s, the file has %s", size(res.Peak), size(info.Size()))
	if info.Size() < 2*memory {
		t.Errorf("a file of %s shows nothing", size(info.Size()))
	}
	if res.Peak > memory {
		t.Errorf("the kernel counted %s with --memory %s", size(res.Peak), size(memory))
	}
}
