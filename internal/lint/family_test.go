package lint

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// familyRoom is where families live, one file each.
const familyRoom = "internal/models"

// otherNames are rooms in which a family's name means something else: kinds of tokenizers and
// pre-tokenizers are called "llama" and "qwen2" too, forms of prompts "mistral", dialects "qwen3".
var otherNames = []string{"internal/tokenizer", "internal/chat", "internal/chat/dialect"}

// familyValue matches the names of variables and fields that hold a family.
var familyValue = regexp.MustCompile(`(?i)(family|model_?type|architectures?)$`)

// registered returns the family names of internal/models by file: the string constants that lead
// a call of a function named register.
func registered(c *checked) map[string][]string {
	out := map[string][]string{}
	for _, f := range c.files {
		file := filepath.Base(c.fset.Position(f.Pos()).Filename)
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if fn, ok := call.Fun.(*ast.Ident); !ok || !strings.EqualFold(fn.Name, "register") {
				return true
			}
			for _, arg := range call.Args {
				if name := c.text(arg); name != "" {
					out[file] = append(out[file], name)
				}
			}
			return true
		})
	}
	return out
}

// text is the value of a constant string, else "".
func (c *checked) text(e ast.Expr) string {
	if v := c.info.Types[e].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return ""
}

// familyFindings rejects comparisons with the name of a family, and comparisons of a family with
// any name. own gives the names that a file may know, its own ones.
func familyFindings(c *checked, families []string, own map[string][]string) []finding {
	var out []finding
	for _, f := range c.files {
		file := filepath.Base(c.fset.Position(f.Pos()).Filename)
		judge := func(at ast.Node, name, subject string) {
			if name == "" || slices.Contains(own[file], name) {
				return
			}
			if slices.Contains(families, name) || familyValue.MatchString(subject) {
				out = append(out, finding{c.at(at), fmt.Sprintf("compares the model's family with %q: a family is described in its own file of %s", name, familyRoom)})
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					judge(n, c.text(n.Y), lastName(n.X))
					judge(n, c.text(n.X), lastName(n.Y))
				}
			case *ast.SwitchStmt:
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						judge(e, c.text(e), lastName(n.Tag))
					}
				}
			}
			return true
		})
	}
	return out
}

// lastName is the identifier that an expression ends with: c.Family and Family() give "Family".
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	case *ast.ParenExpr:
		return lastName(e.X)
	}
	return ""
}

func TestNothingSwitchesOnTheFamily(t *testing.T) {
	tr := load(t)
	models := tr.all[modulePath+"/"+familyRoom]
	if models == nil {
		t.Fatalf("no package %s", familyRoom)
	}
	host := hostArch()
	mc, err := tr.check(models, host)
	if err != nil {
		t.Fatal(err)
	}
	own := registered(mc)
	var families []string
	for _, names := range own {
		families = append(families, names...)
	}
	if len(families) < 2 {
		t.Fatalf("%s registers %d families: this lint no longer finds them", familyRoom, len(families))
	}
	for _, p := range tr.ours {
		if slices.Contains(otherNames, room(p.ImportPath)) {
			continue
		}
		c, err := tr.check(p, host)
		if err != nil {
			t.Errorf("%s: %v", p.ImportPath, err)
			continue
		}
		if p == models {
			report(t, familyFindings(c, families, own))
		} else {
			report(t, familyFindings(c, families, nil))
		}
	}
}

func TestFamilySelf(t *testing.T) {
	c := sample(t, modulePath+"/internal/nn", `package nn
const brand = "llama"
type config struct{ Family, Name string }
func register(name string, more ...string) {}
func init() { register("qwen3", "qwen3_text") }
func f(c config) int {
	switch c.Name {
	case "first", "qwen3": return 1
	}
	if c.Name == brand || c.Family != "new" || c.Family == "" { return 2 }
	if c.Name == "other" { return 3 }
	return 0
}
`)
	families := []string{"llama", "qwen3"}
	wantFindings(t, familyFindings(c, families, nil), `"qwen3"`, `"llama"`, `"new"`)
	own := registered(c)
	if got := strings.Join(own["sample.go"], " "); got != "qwen3 qwen3_text" {
		t.Fatalf("registered families %q", got)
	}
	wantFindings(t, familyFindings(c, families, own), `"llama"`, `"new"`)
}
