package schema

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// TestCorpus compiles schemas as they are found in programs and validates what they write: those of
// testdata (made up: tools, pydantic models, OpenAPI, configuration), and those of a directory that the environment names. It logs how long compilation takes.
func TestCorpus(t *testing.T) {
	var c corpus
	text, err := os.ReadFile("testdata/schemas.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		c.try(t, "schemas.jsonl", line)
	}
	if c.refused > 0 || len(c.times) < 300 {
		t.Errorf("%d schemas of testdata are refused, %d compiled", c.refused, len(c.times))
	}
	c.log(t)
	files, err := filepath.Glob(filepath.Join(os.Getenv("JSON_SCHEMA_CORPUS"), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c.try(t, filepath.Base(file), text)
	}
	c.log(t)
}

type corpus struct {
	times   []time.Duration
	refused int
}

func (c *corpus) try(t *testing.T, name string, text []byte) {
	var best time.Duration
	for range 3 {
		start := time.Now()
		b := cfg.New(cfg.Limits{})
		e, err := Compile(b, text, Options{})
		if err == nil {
			_, err = b.Grammar(e)
		}
		if took := time.Since(start); best == 0 || took < best {
			best = took
		}
		if err != nil {
			c.refused++
			t.Logf("%s (%d bytes, %v): %v", name, len(text), best, err)
			return
		}
	}
	c.times = append(c.times, best)
	if best > 30*time.Millisecond {
		t.Logf("slow: %s (%d bytes): %v", name, len(text), best)
	}
	writeSome(t, name, text)
}

func (c *corpus) log(t *testing.T) {
	slices.Sort(c.times)
	if n := len(c.times); n > 0 {
		t.Logf("%d compiled, %d refused, median %v, 95th percentile %v, most %v", n, c.refused, c.times[n/2], c.times[n*95/100], c.times[n-1])
	}
}

func writeSome(t *testing.T, name string, text []byte) {
	w, err := newWriter(text, Options{}, jsonschema.Draft2020)
	if err != nil {
		t.Logf("%s: the validator does not take it: %.200v", name, err)
		return
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range samples() {
		out, done := w.write(r, 100, 6000)
		if !done {
			if err := w.machine.Err(); err != nil {
				t.Logf("%s: %v", name, err)
			}
			continue
		}
		if err := w.check(out); err != nil {
			t.Errorf("%s writes %s\n%v", name, out, err)
			return
		}
	}
}

// samples is how many texts of each schema are validated.
func samples() int {
	if testing.Short() {
		return 2
	}
	return 6
}
