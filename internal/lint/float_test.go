package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// tensorRooms compute values of tensors, so the rules of docs/numerics.md hold in them.
var tensorRooms = []string{"internal/quant", "internal/kernel", "internal/nn", "internal/models", "internal/kv", "internal/sample"}

// exactMath is what package math offers with the same bits on every architecture.
var exactMath = []string{
	"Sqrt", "Abs", "RoundToEven", "Trunc", "Floor", "Ceil", "Inf", "NaN", "IsInf", "IsNaN", "Signbit",
	"Float32bits", "Float32frombits", "Float64bits", "Float64frombits",
}

// notValues are functions that may use any mathematics, because their result is a figure for
// people and never enters a value.
var notValues = []string{
	"internal/kernel.LogSumExp", // perplexity
}

// inTensorRoom says whether a package is one of the tensor rooms or lies inside one.
func inTensorRoom(importPath string) bool {
	r := room(importPath)
	if strings.HasPrefix(r, "internal/kernel/gen") { // the generator of the assembly computes nothing
		return false
	}
	return slices.ContainsFunc(tensorRooms, func(t string) bool { return r == t || strings.HasPrefix(r, t+"/") })
}

// mathFindings rejects functions of package math whose last bit depends on the machine, and
// random numbers that are not ours. math.FMA may stand in a function whose name begins with fma.
func mathFindings(c *checked) []finding {
	var out []finding
	for _, f := range c.files {
		for _, decl := range f.Decls {
			name := functionName(decl)
			if slices.Contains(notValues, room(c.path)+"."+name) {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					if what := c.inexact(id, isFMA(name)); what != "" {
						out = append(out, finding{c.at(id), what})
					}
				}
				return true
			})
		}
	}
	return out
}

// inexact says what is wrong with the function that id names, if anything.
func (c *checked) inexact(id *ast.Ident, inFMA bool) string {
	obj, ok := c.info.Uses[id].(*types.Func)
	if !ok || obj.Pkg() == nil || obj.Signature().Recv() != nil {
		return ""
	}
	switch path := obj.Pkg().Path(); {
	case path == "math/rand" || path == "math/rand/v2" || path == "math/cmplx":
		return path + " is not part of the numerics"
	case path != "math" || slices.Contains(exactMath, obj.Name()) || (inFMA && obj.Name() == "FMA"):
		return ""
	default:
		return "math." + obj.Name() + " may differ between architectures or rounds twice: use the functions of kernel"
	}
}

// functionName is the name of a declared function, "" of any other declaration.
func functionName(decl ast.Decl) string {
	if fn, ok := decl.(*ast.FuncDecl); ok {
		return fn.Name.Name
	}
	return ""
}

// isFMA says whether a function defines a fused multiply-add; its own arithmetic is its business.
func isFMA(function string) bool { return strings.HasPrefix(function, "fma") }

// productFindings rejects float sums that a compiler may fuse with a product: x*y ± z, also across
// a local variable, because only an explicit conversion rounds a product. What this cannot see
// (through memory, through inlining) the check of the compiled code sees.
func productFindings(c *checked) []finding {
	var out []finding
	for _, f := range c.files {
		for _, decl := range f.Decls {
			if !isFMA(functionName(decl)) {
				out = append(out, c.productsIn(decl)...)
			}
		}
	}
	return out
}

// productsIn judges one declaration.
func (c *checked) productsIn(decl ast.Node) []finding {
	var out []finding
	held := c.heldProducts(decl)
	operand := func(e ast.Expr) {
		switch {
		case c.isProduct(e):
			out = append(out, finding{c.at(e), "a float product is added without rounding: write float32(x*y), float64(x*y) or fma32"})
		case c.isHeld(e, held):
			out = append(out, finding{c.at(e), fmt.Sprintf("%s holds a float product that was not rounded: write float32(x*y), float64(x*y) or fma32", types.ExprString(e))})
		}
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if (n.Op == token.ADD || n.Op == token.SUB) && c.isFloat(n) {
				operand(n.X)
				operand(n.Y)
			}
		case *ast.AssignStmt:
			if (n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN) && c.isFloat(n.Lhs[0]) {
				operand(n.Lhs[0])
				operand(n.Rhs[0])
			}
		}
		return true
	})
	return out
}

// heldProducts are the local variables that are given an unrounded product anywhere in decl.
func (c *checked) heldProducts(decl ast.Node) map[types.Object]bool {
	held := map[types.Object]bool{}
	mark := func(lhs ast.Expr) {
		if id, ok := ast.Unparen(lhs).(*ast.Ident); ok {
			if obj := c.object(id); obj != nil {
				held[obj] = true
			}
		}
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.MUL_ASSIGN && c.isFloat(n.Lhs[0]) {
				mark(n.Lhs[0])
			}
			if (n.Tok == token.ASSIGN || n.Tok == token.DEFINE) && len(n.Lhs) == len(n.Rhs) {
				for i, rhs := range n.Rhs {
					if c.isProduct(rhs) {
						mark(n.Lhs[i])
					}
				}
			}
		case *ast.ValueSpec:
			for i, v := range n.Values {
				if len(n.Names) == len(n.Values) && c.isProduct(v) {
					mark(n.Names[i])
				}
			}
		}
		return true
	})
	return held
}

func (c *checked) object(id *ast.Ident) types.Object {
	if obj := c.info.Defs[id]; obj != nil {
		return obj
	}
	return c.info.Uses[id]
}

func (c *checked) isHeld(e ast.Expr, held map[types.Object]bool) bool {
	id, ok := stripSign(e).(*ast.Ident)
	return ok && held[c.object(id)]
}

// isProduct says whether e is a product of floats that no conversion rounds.
func (c *checked) isProduct(e ast.Expr) bool {
	b, ok := stripSign(e).(*ast.BinaryExpr)
	return ok && b.Op == token.MUL && c.isFloat(b)
}

// stripSign removes parentheses and signs: -(x*y) fuses just as well.
func stripSign(e ast.Expr) ast.Expr {
	for {
		e = ast.Unparen(e)
		u, ok := e.(*ast.UnaryExpr)
		if !ok || (u.Op != token.SUB && u.Op != token.ADD) {
			return e
		}
		e = u.X
	}
}

// isFloat says whether e is computed at run time as a float, a type parameter of floats included.
func (c *checked) isFloat(e ast.Expr) bool {
	tv := c.info.Types[e]
	if tv.Type == nil {
		if id, ok := e.(*ast.Ident); ok && c.object(id) != nil {
			return floatType(c.object(id).Type())
		}
		return false
	}
	return tv.Value == nil && floatType(tv.Type)
}

func floatType(t types.Type) bool {
	if b, ok := t.Underlying().(*types.Basic); ok {
		return b.Info()&(types.IsFloat|types.IsComplex) != 0
	}
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	for i := range iface.NumEmbeddeds() {
		if u, ok := iface.EmbeddedType(i).(*types.Union); ok {
			for j := range u.Len() {
				if floatType(u.Term(j).Type()) {
					return true
				}
			}
		} else if floatType(iface.EmbeddedType(i)) {
			return true
		}
	}
	return false
}

func TestFloatArithmetic(t *testing.T) {
	tr := load(t)
	for _, p := range tr.ours {
		if !inTensorRoom(p.ImportPath) {
			continue
		}
		seen := map[finding]bool{}
		for _, arch := range []string{"amd64", "arm64"} {
			c, err := tr.check(p, arch)
			if err != nil {
				t.Errorf("%s (%s): %v", p.ImportPath, arch, err)
				continue
			}
			for _, f := range append(mathFindings(c), productFindings(c)...) {
				if !seen[f] {
					t.Error(f)
				}
				seen[f] = true
			}
		}
	}
}

func TestMathSelf(t *testing.T) {
	c := sample(t, modulePath+"/internal/kernel", `package kernel
import "math"
func bad(x float64) float64 { return math.Exp(x) }
func alsoBad(a, b, c float32) float32 { return float32(math.FMA(float64(a), float64(b), float64(c))) }
func fma64(a, b, c float64) float64 { return math.FMA(a, b, c) }
func good(x float64) float64 { return math.Sqrt(x) * float64(math.MaxInt32) }
var hidden = math.Log
`)
	wantFindings(t, mathFindings(c), "math.Exp", "math.FMA", "math.Log")
}

func TestProductSelf(t *testing.T) {
	for _, c := range []struct {
		line string
		bad  bool
	}{
		{"r = x*y + z", true},
		{"r = z + x*y", true},
		{"r = x*y - z", true},
		{"r = z - (x * y)", true},
		{"r = -(x*y) + z", true},
		{"r += x * y", true},
		{"r -= x * y", true},
		{"r += x * y * z", true},
		{"r = x*2 + z", true},
		{"t := x * y; r = t + z", true},
		{"var t = x * y; r = z - t", true},
		{"t := x; t *= y; r += t", true},
		{"t := x * y; t += z; r = t", true},
		{"func() { r = x*y + z }()", true},
		{"r = float32(x*y) + z", false},
		{"t := float32(x * y); r = t + z", false},
		{"r = (x + y) * z", false},
		{"r = x*y/z + 1", false},
		{"i = i*3 + 1", false},
		{"r = z + 2*3", false},
		{"r = max(x*y, z)", false},
	} {
		src := "package kernel\nfunc f(x, y, z, r float32, i int) (float32, int) {\n" + c.line + "\nreturn r, i\n}\n"
		found := productFindings(sample(t, modulePath+"/internal/kernel", src))
		if got := len(found) > 0; got != c.bad {
			t.Errorf("%q: rejected %v, want %v (%v)", c.line, got, c.bad, found)
		}
	}
	generic := "package kernel\ntype num interface{ ~float32 | ~float64 }\nfunc f[T num](x, y, z T) T { return x*y + z }\n"
	wantFindings(t, productFindings(sample(t, modulePath+"/internal/kernel", generic)), "a float product")
}
