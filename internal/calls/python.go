package calls

import (
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// python is a tool's arguments as keyword arguments.
func python(w *writer, t *tool) (cfg.Expr, error) {
	p := pythonSpelling()
	names := p
	names.colon, names.freeKey = "=", ""
	names.key = func(w *writer, name string) (cfg.Expr, bool) { return w.b.Bytes(name), pyName(name) }
	return w.list(t, t.doc.Root, &names, &p)
}

func pythonSpelling() spelling {
	return spelling{
		yes: "True", no: "False", null: "None", comma: ", ", colon: ": ", freeKey: `"`, json: true, text: pythonText,
		key: func(w *writer, name string) (cfg.Expr, bool) {
			return w.b.Bytes(schema.Quote(name)), utf8.ValidString(name)
		},
	}
}

// pythonText is strings in double quotes, with the escapes that JSON has, too, or in single quotes without any.
func pythonText(w *writer, s *schema.Schema) (cfg.Expr, error) {
	d, err := w.strings(s, false)
	if err != nil {
		return 0, err
	}
	if d.Empty() {
		return 0, noValue(s)
	}
	spelled, err := w.words.JSONString(d, regular.Canonical)
	if err != nil {
		return 0, err
	}
	bare, err := w.words.Regexp(`[^'\\\x00-\x1f\x7f]*`, false)
	if err != nil {
		return 0, err
	}
	if bare, err = w.words.Intersect(d, bare); err != nil {
		return 0, err
	}
	double, single := w.b.Bytes(`"`), w.b.Bytes("'")
	return w.b.Alt(w.b.Seq(double, w.b.DFA(spelled), double), w.b.Seq(single, w.b.DFA(bare), single)), w.b.Err()
}

// pyName says whether parsers take a text for a name in Python's syntax.
func pyName(name string) bool {
	return name != "" && len(name) <= maxWord && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r < utf8.RuneSelf && r != '_' && r != '.' && r != '-' && (r < '0' || '9' < r) && (r|0x20 < 'a' || 'z' < r|0x20)
	})
}
