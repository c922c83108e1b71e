package accept

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/cfg/cfgtest"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// What is written under a schema is accepted under it.
func TestGeneratedIsAccepted(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(31, 32))}
	texts := 0
	for range 600 {
		texts += generated(t, m, []byte(m.schema(1+m.IntN(3))))
	}
	if texts < 1000 {
		t.Errorf("only %d texts were written", texts)
	}
}

func TestGeneratedFormatsAreAccepted(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(33, 34))}
	for _, name := range []string{"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "uri-reference",
		"iri", "iri-reference", "json-pointer", "relative-json-pointer", "uri-template", "idn-email"} {
		text := []byte(`{"type":"string","format":"` + name + `"}`)
		texts := 0
		for range 6 {
			texts += generated(t, m, text)
		}
		if texts < 10 {
			t.Errorf("%s: only %d texts were written", name, texts)
		}
	}
}

func generated(t *testing.T, m maker, text []byte) (texts int) {
	t.Helper()
	b := cfg.New(cfg.Limits{Time: time.Hour})
	doc, err := schema.Parse(text, nil)
	if err != nil {
		return 0
	}
	p, err := Compile(doc, Options{})
	if err != nil {
		return 0
	}
	e, err := schema.Compile(b, text, schema.Options{})
	if err != nil {
		return 0
	}
	g, err := b.Grammar(e)
	if err != nil {
		return 0
	}
	machine := g.NewMachine()
	for range 10 {
		written, ok := cfgtest.Write(machine, m.Rand, 40, 400)
		if !ok {
			continue
		}
		texts++
		if err := p.Check([]byte(written)); err != nil {
			t.Errorf("schema %s\nwritten %s\n%v", text, written, err)
		}
	}
	return texts
}
