package models

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/checkpoint/repack"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// A scheme is how the weights of a Hugging Face checkpoint are quantized: quantization_config in
// config.json names it.
type scheme interface {
	// add adds a module's weights to the view, and returns the tensor that holds the codes. It returns
	// a nil tensor where the module has none of the scheme's tensors, or is left out by the
	// configuration: its weights are then plain.
	add(m module) (repack.Matrix, *checkpoint.Tensor, error)
}

// module is a layer with weights of rows × cols.
type module struct {
	src        *source
	name       string // without ".weight"
	class      string // Linear or Embedding
	rows, cols int
}

// tensor returns a tensor of the module, or nil.
func (m *module) tensor(suffix string) *checkpoint.Tensor {
	t, ok := m.src.cat.Tensor(m.name + suffix)
	if !ok {
		return nil
	}
	return t
}

// need returns tensors of the module that must be there besides another.
func (m *module) need(suffixes ...string) ([]*checkpoint.Tensor, error) {
	var list []*checkpoint.Tensor
	for _, suffix := range suffixes {
		t := m.tensor(suffix)
		if t == nil {
			return nil, fmt.Errorf("tensor %s is missing", container.Name(m.name+suffix))
		}
		list = append(list, t)
	}
	return list, nil
}

// schemes make a scheme from quantization_config; by quant_method.
var schemes = map[string]func(c *config, q jsonValues) scheme{
	"awq": newAWQ, "bitsandbytes": newBitsAndBytes, "compressed-tensors": newCompressed, "fbgemm_fp8": newFP8, "fp8": newFP8,
	"gptq": newGPTQ, "mxfp4": newMXFP4,
}

// scheme reads quantization_config; nil if there is none.
func (c *config) scheme() (scheme, error) {
	o, ok := c.values.object("quantization_config")
	if !ok {
		return nil, nil
	}
	q := o.(jsonValues)
	method, _ := q.text("quant_method", "")
	build, ok := schemes[method]
	if !ok {
		c.fail("quantization_config names the scheme %q, which is not supported; supported are %s",
			method, strings.Join(slices.Sorted(maps.Keys(schemes)), ", "))
		return nil, c.err
	}
	s := build(c, q)
	return s, c.err
}

// quantized finds the weights of a module that the scheme quantizes.
func (s *source) quantized(modules []string, class string, rows, cols int) (*layout.Matrix, bool, error) {
	s.openView()
	for _, name := range modules {
		at, t, err := s.scheme.add(module{s, name, class, rows, cols})
		if err != nil {
			return nil, false, err
		}
		if t == nil {
			continue
		}
		if at.Order >= 0 && class == "Embedding" { // rows of it are looked up as they are
			return nil, false, fmt.Errorf("tensor %s: an embedding with reordered columns is not supported", container.Name(t.Name))
		}
		return s.viewed(at, t, rows, cols), true, nil
	}
	return nil, false, nil
}

// openView makes the view, once.
func (s *source) openView() {
	if s.view == nil {
		s.view = repack.New("the quantized weights of "+s.cat.Path, s.files())
	}
}

func (s *source) files() []vfs.File {
	files := make([]vfs.File, len(s.cat.Files))
	for i := range files {
		files[i] = s.cat.Files[i].File
	}
	return files
}

// viewed is a matrix of the view.
func (s *source) viewed(at repack.Matrix, t *checkpoint.Tensor, rows, cols int) *layout.Matrix {
	file := len(s.cat.Files)
	m := &layout.Matrix{Name: t.Name, Type: at.Type, Rows: rows, Cols: cols, File: file, Offset: at.Offset}
	if at.Order >= 0 {
		m.Order = &layout.Vector{Name: "order of " + t.Name, Type: quant.F32, Len: cols, File: file, Offset: at.Order}
	}
	return m
}

// finish hands the view over, if there is anything in it.
func (s *source) finish(m *layout.Model) {
	if s.view == nil || s.view.ScratchBytes() == 0 {
		return
	}
	s.cat.Views = []vfs.File{s.view}
	m.ReadScratch, m.Exchanged = int64(s.view.ScratchBytes()), s.view.Exchanged()
}

// exceptions are modules that a configuration leaves out.
type exceptions []pattern

// pattern names modules: by name, by a part of the name between dots, or after "re:" by an expression
// that matches from the beginning.
type pattern struct {
	text       string
	expression *regexp.Regexp
}

// What the expressions of a configuration may take: compiled they are much larger than their text, and no lease
// covers them. Repetitions with a count are refused, since one of 1000 is as large as 1000.
const (
	maxExpressions     = 256
	maxExpressionBytes = 16 << 10
)

// patterns reads a list of names and expressions.
func (c *config) patterns(v values, key string) []pattern {
	var list []pattern
	all, _ := v.list(key)
	for _, e := range all {
		text, _ := e.(string)
		p := pattern{text: text}
		if x, ok := strings.CutPrefix(text, "re:"); ok {
			if p.expression = c.expression(key, x); p.expression == nil {
				return nil
			}
		}
		list = append(list, p)
	}
	return list
}

// expression compiles an expression that matches from the beginning of a name; nil if that fails.
func (c *config) expression(key, x string) *regexp.Regexp {
	c.expressions, c.expressionBytes = c.expressions+1, c.expressionBytes+len(x)
	if c.expressions > maxExpressions || c.expressionBytes > maxExpressionBytes {
		c.fail("%s: more than %d expressions, or %d bytes of them, are not supported", key, maxExpressions, maxExpressionBytes)
		return nil
	}
	if counts(x) {
		c.fail("%s: the expression %q counts repetitions, which is not supported", key, x)
		return nil
	}
	e, err := regexp.Compile("^(?:" + x + ")")
	if err != nil {
		c.fail("%s: the expression %q cannot be read: %v", key, x, err)
	}
	return e
}

// counts reports whether an expression has a repetition such as {3}.
func counts(x string) bool {
	for i := range len(x) - 1 {
		if x[i] == '{' && x[i+1] >= '0' && x[i+1] <= '9' {
			return true
		}
	}
	return false
}

// matches reports whether the pattern is an expression, or the name itself.
func (p pattern) matches(name string) bool {
	if p.expression != nil {
		return p.expression.MatchString(name)
	}
	return p.text == name
}

// has reports whether a module is left out: its own name, one above it, or as transformers has it, a
// part of its name.
func (x exceptions) has(name string) bool {
	for _, p := range x {
		if p.matches(name) || p.expression == nil && p.text != "" && strings.Contains("."+name+".", "."+p.text+".") {
			return true
		}
	}
	return false
}

// whole reads a whole number that must be there, from lo on.
func (c *config) whole(v values, key string, lo int) int {
	n, ok := v.number(key, "")
	if !ok || n != float64(int(n)) || n < float64(lo) || n > maxDim {
		c.fail("quantization_config.%s is %v, expected a whole number from %d to %d", key, n, lo, maxDim)
		return max(lo, 1)
	}
	return int(n)
}
