package calls

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// maxWord is how long names of tools and arguments are that parsers read.
const maxWord = 256

// A writer writes the calls of one grammar.
type writer struct {
	b         *cfg.Builder
	o         *Options
	f         *form
	name      string // of the dialect
	words     *regular.Builder
	languages map[language]*regular.DFA
}

// A tool is what is read of a Tool.
type tool struct {
	Tool
	doc    *schema.Document
	typing *dialect.Typing
	any    *schema.Schema // of any value
	rules  map[place]cfg.Rule

	elements map[elementPlace]cfg.Rule
}

func newWriter(b *cfg.Builder, o *Options, name string) *writer {
	return &writer{b: b, o: o, name: name, words: regular.NewBuilder(grammar.RegularLimits(b)), languages: map[language]*regular.DFA{}}
}

// calls are one call or, if there may be several, more.
func (w *writer) calls(f *form, several bool) (cfg.Expr, error) {
	w.f = f
	var all []cfg.Expr
	for i := range w.o.Tools {
		e, err := w.call(&w.o.Tools[i])
		if err != nil {
			return 0, &ToolError{w.o.Tools[i].Name, w.name, err}
		}
		all = append(all, e)
	}
	one := w.b.Alt(all...)
	open, err := w.expand(f.open, nil)
	if err != nil {
		return 0, err
	}
	parts := []cfg.Expr{open, one}
	if several {
		parts = append(parts, w.b.Repeat(w.b.Seq(w.text(f.sep), one), 0, -1))
	}
	return w.b.Seq(append(parts, w.text(f.end))...), w.b.Err()
}

// call is one call of a tool.
func (w *writer) call(from *Tool) (cfg.Expr, error) {
	if err := w.checkName(from.Name); err != nil {
		return 0, err
	}
	t, err := readTool(from)
	if err != nil {
		return 0, err
	}
	args := w.f.args
	if args == nil {
		args = jsonObject
	}
	e, err := args(w, t)
	if err != nil {
		return 0, err
	}
	quoted := schema.Quote(t.Name)
	return w.expand(w.f.call, map[string]cfg.Expr{"args": e, "name": w.b.Bytes(t.Name), "quoted": w.b.Bytes(quoted[1 : len(quoted)-1])})
}

// checkName says whether a name can be read where it stands.
func (w *writer) checkName(name string) error {
	word := w.f.word
	if word == nil {
		word = rawName
	}
	if !strings.Contains(w.f.call, "$name") { // it is a string of JSON
		word = func(name string) bool { return name != "" && utf8.ValidString(name) }
	}
	if !word(name) || slices.Contains(w.f.taken, name) {
		return fmt.Errorf("the dialect cannot write a tool of this name")
	}
	return nil
}

// rawName: what parsers take for a name outside of strings.
func rawName(name string) bool {
	return name != "" && len(name) <= maxWord && utf8.ValidString(name) && !strings.ContainsAny(name, "<>{}[]()\"'`,;|\x7f") &&
		!strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' })
}

// readTool reads a tool's schema.
func readTool(from *Tool) (*tool, error) {
	t := &tool{Tool: *from, rules: map[place]cfg.Rule{}, elements: map[elementPlace]cfg.Rule{}}
	text := from.Schema
	if len(text) == 0 {
		text = []byte("{}")
	}
	var err error
	if t.doc, err = schema.Parse(text, nil); err != nil {
		return nil, err
	}
	v, err := chat.ParseJSON(text)
	if err != nil {
		return nil, err
	}
	parameters, _ := v.(*chat.Object)
	t.typing = dialect.NewTyping(parameters)
	t.any = t.node(t.doc.Root)
	return t, nil
}

// node is a schema of any value, to be narrowed.
func (t *tool) node(like *schema.Schema) *schema.Schema { return t.doc.Add(like.Where, like.Draft) }

// expand writes a text with holes.
func (w *writer) expand(template string, holes map[string]cfg.Expr) (cfg.Expr, error) {
	var parts []cfg.Expr
	for i, piece := range strings.Split(template, "$") {
		if i > 0 {
			n := len(piece) - len(strings.TrimLeft(piece, "abcdefghijklmnopqrstuvwxyz"))
			e, err := w.hole(piece[:n], holes)
			if err != nil {
				return 0, err
			}
			parts = append(parts, e)
			piece = piece[n:]
		}
		parts = append(parts, w.text(piece))
	}
	return w.b.Seq(parts...), w.b.Err()
}

func (w *writer) hole(name string, holes map[string]cfg.Expr) (cfg.Expr, error) {
	switch name {
	case "digits":
		return w.regexp("0|[1-9][0-9]{0,2}")
	case "id":
		return w.regexp("[a-zA-Z0-9]{9}")
	case "space":
		return w.b.Opt(w.b.Bytes(" ")), nil
	}
	e, ok := holes[name]
	if !ok {
		return 0, fmt.Errorf("the form of the dialect %s has an unknown part $%s", w.name, name)
	}
	return e, nil
}

func (w *writer) regexp(pattern string) (cfg.Expr, error) {
	d, err := w.words.Regexp(pattern, false)
	if err != nil {
		return 0, err
	}
	return w.b.DFA(d), nil
}

// text is a text of the form, its marks as tokens where the vocabulary has them.
func (w *writer) text(s string) cfg.Expr {
	var parts []cfg.Expr
	for _, p := range w.o.pieces(s) {
		switch p := p.(type) {
		case grammar.TokenID:
			parts = append(parts, w.b.Token(int32(p)))
		case grammar.Literal:
			parts = append(parts, w.b.Bytes(string(p)))
		}
	}
	return w.b.Seq(parts...)
}

// text is the same as a part of a Format.
func (o *Options) text(s string) grammar.Format { return grammar.Sequence(o.pieces(s)) }

// pieces cuts a text at the marks that the vocabulary has as tokens.
func (o *Options) pieces(s string) []grammar.Format {
	var out []grammar.Format
	done := 0
	for i := 0; i < len(s) && o.Token != nil; {
		n, id := o.tokenAt(s[i:])
		if n == 0 {
			i++
			continue
		}
		if done < i {
			out = append(out, grammar.Literal(s[done:i]))
		}
		out = append(out, grammar.TokenID(id))
		i += n
		done = i
	}
	if done < len(s) || len(out) == 0 {
		out = append(out, grammar.Literal(s[done:]))
	}
	return out
}

// tokenAt is the longest mark that s begins with and that is a token.
func (o *Options) tokenAt(s string) (length int, id int32) {
	for _, m := range marks {
		if len(m) <= length || !strings.HasPrefix(s, m) {
			continue
		}
		if at, ok := o.Token(m); ok {
			length, id = len(m), at
		}
	}
	return length, id
}
