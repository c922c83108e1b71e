package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxFunctionLines = 120
	longestShown     = 10
)

// length is how many lines a function has.
type length struct {
	at    string
	name  string
	lines int
}

// functionLengths measures the declared functions of a file, longest first is not promised.
func functionLengths(fset *token.FileSet, name string, f *ast.File) []length {
	var out []length
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			first, last := fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line
			out = append(out, length{fmt.Sprintf("%s:%d", name, first), fn.Name.Name, last - first + 1})
		}
	}
	return out
}

func lengthFindings(all []length) []finding {
	var out []finding
	for _, l := range all {
		if l.lines > maxFunctionLines {
			out = append(out, finding{l.at, fmt.Sprintf("%s has %d lines, more than %d", l.name, l.lines, maxFunctionLines)})
		}
	}
	return out
}

// TestFunctionLengths fails on functions that nobody takes in at a glance, and shows the longest
// (go test -v).
func TestFunctionLengths(t *testing.T) {
	root, files := goSources(t)
	fset := token.NewFileSet()
	var all []length
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !ast.IsGenerated(f) {
			all = append(all, functionLengths(fset, name, f)...)
		}
	}
	report(t, lengthFindings(all))
	slices.SortFunc(all, func(a, b length) int { return b.lines - a.lines })
	if len(all) > 0 {
		t.Logf("%d functions; median %d lines, 9 in 10 have at most %d", len(all), all[len(all)/2].lines, all[len(all)/10].lines)
	}
	for _, l := range all[:min(len(all), longestShown)] {
		t.Logf("%4d lines: %s %s", l.lines, l.at, l.name)
	}
}

func TestLengthSelf(t *testing.T) {
	src := "package p\nfunc short() {}\nfunc long() {\n" + strings.Repeat("\tshort()\n", 130) + "}\n"
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantFindings(t, lengthFindings(functionLengths(fset, "p.go", f)), "long has 132 lines")
}
