// Package cfgtest asks grammars which texts they accept. It is for tests alone.
package cfgtest

import (
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// Accepts says whether a text is in a grammar's language.
func Accepts(m *cfg.Machine, text string) bool {
	c := m.Start()
	for i := range len(text) {
		c = m.Step(c, text[i])
	}
	return c != cfg.Dead && m.MayEnd(c)
}

// Parse reads a grammar in a notation.
type Parse func(b *cfg.Builder, text string) (cfg.Expr, error)

// Machine runs a grammar.
func (parse Parse) Machine(text string, l cfg.Limits) (*cfg.Machine, error) {
	b := cfg.New(l)
	e, err := parse(b, text)
	if err != nil {
		return nil, err
	}
	g, err := b.Grammar(e)
	if err != nil {
		return nil, err
	}
	return g.NewMachine(), nil
}

// Texts checks which texts grammars accept: by grammar, those in its language, and those that are not.
func (parse Parse) Texts(t *testing.T, cases map[string][2][]string) {
	t.Helper()
	for grammar, texts := range cases {
		m, err := parse.Machine(grammar, cfg.Limits{})
		if err != nil {
			t.Errorf("%s: %v", grammar, err)
			continue
		}
		for i, accepted := range []bool{true, false} {
			for _, text := range texts[i] {
				if Accepts(m, text) != accepted {
					t.Errorf("%s: accepts %q: %v, want %v", grammar, text, !accepted, accepted)
				}
			}
		}
	}
}

// Errors checks what is said about grammars that are wrong.
func (parse Parse) Errors(t *testing.T, wants map[string]string) {
	t.Helper()
	for grammar, want := range wants {
		if _, err := parse.Machine(grammar, cfg.Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %q", grammar, err, want)
		}
	}
}

// Run reads any text as a grammar, and if it is one as a text of it, within small limits: nothing may go wrong.
func (parse Parse) Run(text string) {
	m, err := parse.Machine(text, cfg.Limits{Nodes: 1 << 14, Memory: 1 << 20})
	if err != nil {
		return
	}
	c := m.Start()
	for i := range min(len(text), 100) {
		c = m.Step(c, text[i])
	}
}
