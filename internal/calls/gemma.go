package calls

import (
	"strings"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// gemmaObject is a tool's arguments as Gemma's models write them.
func gemmaObject(w *writer, t *tool, quote string) (cfg.Expr, error) {
	p := spelling{
		yes: "true", no: "false", null: "null", comma: ",", colon: ":",
		text: func(w *writer, s *schema.Schema) (cfg.Expr, error) {
			e, err := w.raw(s, []string{quote}, nil)
			return w.b.Seq(w.text(quote), e, w.text(quote)), err
		},
		key: func(w *writer, name string) (cfg.Expr, bool) {
			if name != "" && len(name) <= maxWord && !strings.ContainsAny(name, ":,{}[]<\"\n") && strings.TrimSpace(name) == name {
				return w.b.Bytes(name), true
			}
			return w.b.Seq(w.text(quote), w.b.Bytes(name), w.text(quote)), !strings.Contains(name, quote)
		},
	}
	return w.object(t, t.doc.Root, &p)
}
