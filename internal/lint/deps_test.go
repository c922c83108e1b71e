package lint

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// chosen is every module that code may import: the design's table of libraries.
var chosen = []string{
	"github.com/alecthomas/kong",
	"github.com/goccy/go-yaml",
	"github.com/dlclark/regexp2/v2",
	"golang.org/x/sys",
	"golang.org/x/term",
	"golang.org/x/text",
	"github.com/klauspost/cpuid/v2",
}

// chosenForTests is what only tests may import.
var chosenForTests = []string{
	"github.com/google/go-cmp",
	"pgregory.net/rapid",
	"github.com/cockroachdb/datadriven",
	"github.com/rogpeppe/go-internal",
	"go.uber.org/goleak",
	"github.com/santhosh-tekuri/jsonschema/v6",
}

// carried is what the chosen modules bring along.
var carried = []string{
	"github.com/pmezard/go-difflib",
	"golang.org/x/tools",
}

// unsafeRooms are the rooms whose business is memory, machine code, and system calls that take a
// structure: captest asks mincore, machine asks Windows.
var unsafeRooms = []string{"internal/mem", "internal/kernel", "internal/captest", "internal/machine"}

func inModule(importPath string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool {
		return importPath == m || strings.HasPrefix(importPath, m+"/")
	})
}

func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// importFindings judges the imports of one file. dir is the package's folder below the root.
func importFindings(name string, f *ast.File) []finding {
	var out []finding
	folder := filepath.ToSlash(filepath.Dir(name))
	// A package such as layouttest serves the tests of other rooms.
	test := strings.HasSuffix(name, "_test.go") || strings.HasSuffix(folder, "test")
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		bad := func(format string, args ...any) {
			out = append(out, finding{name, fmt.Sprintf(format, args...)})
		}
		switch {
		case path == "C":
			bad("uses cgo")
		case path == "unsafe" && !test && !slices.Contains(unsafeRooms, folder):
			bad("imports unsafe, which only %s may", strings.Join(unsafeRooms, ", "))
		case strings.HasPrefix(path, "simd"):
			bad("imports %s, which is experimental", path)
		case isStandard(path) || isOurs(path) || inModule(path, chosen):
		case inModule(path, chosenForTests) && test:
		default:
			bad("imports %s, which is not one of the chosen libraries", path)
		}
	}
	return out
}

// ownModule says whether a file belongs to a module of its own below the root (the generator of
// the assembly has one, so that its libraries are not ours).
func ownModule(name string, modules []string) bool {
	return slices.ContainsFunc(modules, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
}

// nestedModules are the folders below the root that have a go.mod.
func nestedModules(files []string) []string {
	var out []string
	for _, f := range files {
		if dir, ok := strings.CutSuffix(f, "/go.mod"); ok {
			out = append(out, dir)
		}
	}
	return out
}

func TestImportsAreChosen(t *testing.T) {
	_, all := repoFiles(t)
	nested := nestedModules(all)
	root, files := goSources(t)
	fset := token.NewFileSet()
	for _, name := range files {
		f, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.ImportsOnly)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !ownModule(name, nested) {
			report(t, importFindings(name, f))
		}
	}
}

func TestImportsSelf(t *testing.T) {
	src := `package p
import "C"
import ("fmt"; "unsafe"; "simd/archsimd"; "github.com/google/go-cmp/cmp"; "github.com/ebitengine/purego"; "golang.org/x/sys/unix")
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	wantFindings(t, importFindings("internal/plan/p.go", f), "cgo", "unsafe", "experimental", "go-cmp", "purego")
	wantFindings(t, importFindings("internal/kernel/p_test.go", f), "cgo", "experimental", "purego")
}

// requirements reads the module paths that go.mod requires, through the go command.
func requirements(t *testing.T, root string) []string {
	t.Helper()
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod edit: %v", err)
	}
	var mod struct {
		Require []struct{ Path string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Replace) > 0 {
		t.Errorf("go.mod replaces %v: a stranger's `go install` ignores that", mod.Replace)
	}
	var paths []string
	for _, r := range mod.Require {
		paths = append(paths, r.Path)
	}
	return paths
}

func requirementFindings(paths []string) []finding {
	var out []finding
	for _, p := range paths {
		if !slices.Contains(chosen, p) && !slices.Contains(chosenForTests, p) && !slices.Contains(carried, p) {
			out = append(out, finding{"go.mod", "requires " + p + ", which is not one of the chosen libraries"})
		}
	}
	return out
}

func TestRequirementsAreChosen(t *testing.T) {
	report(t, requirementFindings(requirements(t, load(t).root)))
}

func TestRequirementsSelf(t *testing.T) {
	wantFindings(t, requirementFindings([]string{"golang.org/x/sys", "github.com/ebitengine/purego"}), "purego")
}
