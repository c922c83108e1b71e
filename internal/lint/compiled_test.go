package lint

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func hostArch() string { return build.Default.GOARCH }

// fused matches an instruction of the compiler's listing that multiplies and adds with one
// rounding, on arm64 (FMADDS, FNMSUBD …) and on amd64 (VFMADD231SS …), with its position.
var fused = regexp.MustCompile(`\(([^()]+\.go):(\d+)\)\s+((?:FN?M(?:ADD|SUB)[SD]|VFN?M(?:ADD|SUB)\d+[SP][SD])\b.*)`)

// lines is a range of lines of a file.
type lines struct {
	file        string
	first, last int
}

// fmaLines are the functions that may contain fused instructions, wherever they are inlined: the
// compiler's listing gives the place in the source.
func (tr *tree) fmaLines(c *checked) []lines {
	var out []lines
	for _, f := range c.files {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && isFMA(fn.Name.Name) {
				first, last := c.fset.Position(fn.Pos()), c.fset.Position(fn.End())
				out = append(out, lines{filepath.Base(first.Filename), first.Line, last.Line})
			}
		}
	}
	return out
}

// fusedFindings reads a listing made with -gcflags=-S.
func fusedFindings(listing io.Reader, allowed []lines) ([]finding, error) {
	var out []finding
	seen := map[string]bool{} // one finding a line: a function is compiled again wherever it is inlined
	scan := bufio.NewScanner(listing)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		m := fused.FindStringSubmatch(scan.Text())
		if m == nil || inLines(m[1], m[2], allowed) {
			continue
		}
		at := m[1] + ":" + m[2]
		if seen[at] {
			continue
		}
		seen[at] = true
		out = append(out, finding{at, "the compiler fused a product with a sum: " + m[3]})
	}
	return out, scan.Err()
}

func inLines(file, line string, allowed []lines) bool {
	var n int
	if _, err := fmt.Sscan(line, &n); err != nil {
		return false
	}
	for _, l := range allowed {
		if filepath.Base(file) == l.file && l.first <= n && n <= l.last {
			return true
		}
	}
	return false
}

// listing compiles packages for another machine and returns what the compiler made of them.
func listing(dir string, env []string, packages ...string) (*bytes.Buffer, error) {
	cmd := exec.Command("go", append([]string{"build", "-gcflags=-S"}, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS="), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		text := out.String()
		return nil, fmt.Errorf("go build for %v: %w\n%s", env, err, text[max(0, len(text)-2000):])
	}
	return &out, nil
}

// targets are the machines for which the compiler fuses.
var targets = [][]string{{"GOARCH=arm64"}, {"GOARCH=amd64", "GOAMD64=v3"}}

func TestCompiledCodeDoesNotFuse(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short (compiles for two other machines)")
	}
	tr := load(t)
	var packages []string
	var allowed []lines
	for _, p := range tr.ours {
		if !inTensorRoom(p.ImportPath) || len(p.GoFiles) == 0 {
			continue
		}
		packages = append(packages, p.ImportPath)
		c, err := tr.check(p, hostArch())
		if err != nil {
			t.Fatal(err)
		}
		allowed = append(allowed, tr.fmaLines(c)...)
	}
	for _, env := range targets {
		t.Run(strings.Join(env, ","), func(t *testing.T) {
			text, err := listing(tr.root, env, packages...)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(text.Bytes(), []byte("STEXT")) {
				t.Fatal("the compiler printed no listing")
			}
			found, err := fusedFindings(text, allowed)
			if err != nil {
				t.Fatal(err)
			}
			report(t, found)
		})
	}
}

func TestCompiledSelf(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module sample\n\ngo 1.26\n")
	write("a.go", `package sample

func mul(x, y float32) float32 { return x * y }

func hidden(x, y, z float32) float32 { return mul(x, y) + z }

func fma64(x, y, z float64) float64 { return x*y - z }

func rounded(x, y, z float32) float32 { return float32(x*y) + z }
`)
	for _, env := range targets {
		text, err := listing(dir, env, ".")
		if err != nil {
			t.Fatal(err)
		}
		found, err := fusedFindings(text, []lines{{"a.go", 7, 7}})
		if err != nil {
			t.Fatal(err)
		}
		wantFindings(t, found, "a.go:")
		if !strings.Contains(found[0].at, "a.go:3") && !strings.Contains(found[0].at, "a.go:5") {
			t.Errorf("%v: found %v instead of the inlined product", env, found[0])
		}
	}
}
