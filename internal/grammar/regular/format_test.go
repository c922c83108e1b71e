package regular

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var formatNames = []string{"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "uri-reference",
	"iri", "iri-reference", "json-pointer", "relative-json-pointer", "uri-template", "idn-email", "idn-hostname"}

// Whatever is written under a format, a validator accepts.
func TestFormatsAreAccepted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	for _, name := range formatNames {
		start := time.Now()
		b := NewBuilder(Limits{})
		d, ok, err := b.Format(name)
		if err != nil || !ok {
			t.Fatal(name, ok, err)
		}
		t.Log(name, d.States(), "states", d.Bytes(), "bytes", b.steps, "steps", time.Since(start))
		exact, ok, err := b.ExactFormat(name)
		if err != nil {
			t.Fatal(name, err)
		}
		if ok {
			t.Log(name, "exact", exact.States(), exact.Bytes())
			if rest := must(t)(b.Difference(d, exact)); !rest.Empty() {
				t.Errorf("%s: what is written is no part of the format", name)
			}
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("s.json", map[string]any{"format": name}); err != nil {
			t.Fatal(err)
		}
		s := c.MustCompile("s.json")
		for range 3000 {
			text := walk(d, r)
			if err := s.Validate(text); err != nil {
				t.Errorf("%s: %q: %v", name, text, err)
				break
			}
		}
	}
}

// Years that many calendars lack are not written.
func TestYearZero(t *testing.T) {
	b := NewBuilder(Limits{})
	for _, name := range []string{"date", "date-time"} {
		d, _, err := b.Format(name)
		if err != nil {
			t.Fatal(err)
		}
		rest := map[string]string{"date": "", "date-time": "T00:00:00Z"}[name]
		if d.Match("0000-01-01"+rest) || !d.Match("0001-01-01"+rest) || !d.Match("2000-02-29"+rest) {
			t.Errorf("%s: the year 0 is written, or another is not", name)
		}
	}
}
