package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spillway/spillway/internal/testutil"
)

// modulePath is the prefix of every package of ours.
const modulePath = "github.com/spillway/spillway"

// finding is one broken rule: where and what.
type finding struct {
	at   string
	what string
}

func (f finding) String() string { return f.at + ": " + f.what }

// report fails the test with every finding.
func report(t *testing.T, found []finding) {
	t.Helper()
	for _, f := range found {
		t.Error(f)
	}
}

// wantFindings is the shape of every self-test: the sample must be rejected in exactly these
// places, each named by a part of its text.
func wantFindings(t *testing.T, found []finding, want ...string) {
	t.Helper()
	if len(found) != len(want) {
		t.Fatalf("%d findings instead of %d: %v", len(found), len(want), found)
	}
	for i, w := range want {
		if !strings.Contains(found[i].String(), w) {
			t.Errorf("finding %d is %q, want something with %q", i, found[i], w)
		}
	}
}

// listed is what `go list` says of one package.
type listed struct {
	ImportPath   string
	Dir          string
	Export       string
	Standard     bool
	DepOnly      bool
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Error        *struct{ Err string }
}

// tree is the module as the compiler sees it on this machine.
type tree struct {
	root string
	ours []*listed
	all  map[string]*listed
	fset *token.FileSet
	imp  types.Importer
}

var loadOnce = sync.OnceValues(func() (*tree, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "list", "-e", "-export", "-deps",
		"-json=ImportPath,Dir,Export,Standard,DepOnly,GoFiles,Imports,TestImports,XTestImports,Error", "./...")
	cmd.Dir = root
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	tr := &tree{root: root, all: map[string]*listed{}, fset: token.NewFileSet()}
	for dec := json.NewDecoder(&stdout); ; {
		p := new(listed)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		tr.all[p.ImportPath] = p
		if !p.DepOnly && !p.Standard {
			tr.ours = append(tr.ours, p)
		}
	}
	tr.imp = importer.ForCompiler(tr.fset, "gc", tr.open)
	return tr, nil
})

func load(t *testing.T) *tree {
	t.Helper()
	testutil.WatchTree(t)
	tr, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, statErr := os.Stat(filepath.Join(dir, "go.mod")); statErr == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// open gives the importer the compiler's export data of a package.
func (tr *tree) open(path string) (io.ReadCloser, error) {
	p := tr.all[path]
	if p == nil || p.Export == "" {
		return nil, fmt.Errorf("no export data of %s", path)
	}
	return os.Open(p.Export)
}

// room is the path of a package below the module: "internal/kernel", "cmd/spillway", "" for the root.
func room(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, modulePath), "/")
}

// isOurs says whether an import path belongs to this module.
func isOurs(importPath string) bool {
	return importPath == modulePath || strings.HasPrefix(importPath, modulePath+"/")
}

// checked is one package with its types.
type checked struct {
	path  string
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// at is a position for a finding.
func (c *checked) at(n ast.Node) string {
	p := c.fset.Position(n.Pos())
	return fmt.Sprintf("%s/%s:%d", room(c.path), filepath.Base(p.Filename), p.Line)
}

// check parses and types the package's files for one architecture. For another one than this
// machine's, errors of types are left to the builds of CI: the imports are this machine's.
func (tr *tree) check(p *listed, goarch string) (*checked, error) {
	ctx := build.Default
	ctx.GOARCH = goarch
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if ok, err := ctx.MatchFile(p.Dir, name); err != nil || !ok {
			continue
		}
		f, err := parser.ParseFile(tr.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return typed(tr.fset, tr.imp, p.ImportPath, files, goarch == build.Default.GOARCH)
}

// typed runs the type checker; strict makes its errors ours.
func typed(fset *token.FileSet, imp types.Importer, path string, files []*ast.File, strict bool) (*checked, error) {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}
	var problems []error
	conf := types.Config{Importer: imp, Error: func(err error) { problems = append(problems, err) }}
	_, _ = conf.Check(path, fset, files, info) // conf.Error has collected what is wrong
	if strict && len(problems) > 0 {
		return nil, problems[0]
	}
	return &checked{path: path, fset: fset, files: files, info: info}, nil
}

// sample types one file of source text as if it were a package of ours.
func sample(t *testing.T, path, src string) *checked {
	t.Helper()
	tr := load(t)
	f, err := parser.ParseFile(tr.fset, "sample.go", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	c, err := typed(tr.fset, tr.imp, path, []*ast.File{f}, true)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// repoFiles lists what is, or is about to be, in version control, relative to the root, with
// slashes. Without git it walks the tree.
func repoFiles(t *testing.T) (root string, files []string) {
	t.Helper()
	testutil.WatchTree(t)
	root = testutil.Root(t)
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
			if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
				files = append(files, name)
			}
		}
		return root, files
	}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(root, path)
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return root, files
}

// goSources is the repository's Go files, whatever their build tags.
func goSources(t *testing.T) (root string, files []string) {
	t.Helper()
	root, all := repoFiles(t)
	for _, name := range all {
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
			files = append(files, name)
		}
	}
	return root, files
}
