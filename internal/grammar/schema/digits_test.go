package schema

import (
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/cfg/cfgtest"
)

// Numbers without a bound have few digits; those of far bounds have what they need.
func TestDigits(t *testing.T) {
	nines := func(n int) string { return strings.Repeat("9", n) }
	for _, c := range []struct {
		schema, text string
		want         bool
	}{
		{`{"type":"integer"}`, nines(16), true},
		{`{"type":"integer"}`, "-" + nines(16), true},
		{`{"type":"integer"}`, nines(17), false},
		{`{"type":"integer","minimum":5}`, nines(17), false},
		{`{"type":"integer","maximum":5}`, "-" + nines(17), false},
		{`{"type":"integer","minimum":1e20}`, "1" + nines(20), true},
		{`{"type":"number"}`, "0." + nines(16), true},
		{`{"type":"number"}`, "0." + nines(17), false},
		{`{"type":"number","minimum":0}`, "0." + nines(17), false},
		{`{"type":"number","minimum":0.00000000000000000001,"maximum":0.00000000000000000003}`, "0.00000000000000000002", true},
	} {
		b := cfg.New(cfg.Limits{})
		e, err := Compile(b, []byte(c.schema), Options{})
		if err != nil {
			t.Fatal(c.schema, err)
		}
		g, err := b.Grammar(e)
		if err != nil {
			t.Fatal(c.schema, err)
		}
		if got := cfgtest.Accepts(g.NewMachine(), c.text); got != c.want {
			t.Errorf("%s: %s is written: %v", c.schema, c.text, got)
		}
	}
}
