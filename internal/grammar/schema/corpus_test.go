package schema

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// TestCorpus compiles the schemas of a directory, which the environment names, and validates what
// they write. It logs which are refused and how long compilation takes.
func TestCorpus(t *testing.T) {
	dir := os.Getenv("JSON_SCHEMA_CORPUS")
	if dir == "" {
		t.Skip("skipped: JSON_SCHEMA_CORPUS does not name a directory of schemas")
	}
	files, err := filepath.Glob(filepath.Join(dir, os.Getenv("JSON_SCHEMA_CORPUS_GLOB")+"*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Duration
	why := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var took, whole time.Duration
		var failed error
		for range 3 {
			start := time.Now()
			b := cfg.New(cfg.Limits{})
			e, err := Compile(b, text, Options{})
			compiled := time.Since(start)
			if err == nil {
				_, err = b.Grammar(e)
			}
			d := time.Since(start)
			if failed = err; took == 0 || d < whole {
				took, whole = compiled, d
			}
			if whole > time.Second {
				break
			}
		}
		name := filepath.Base(file)
		if failed != nil {
			why[keywordOf(failed)]++
			t.Logf("%s (%d bytes, %v): %v", name, len(text), whole, failed)
			continue
		}
		times = append(times, whole)
		if whole > 20*time.Millisecond {
			t.Logf("slow: %s (%d bytes): %v, of which schema %v", name, len(text), whole, took)
		}
		writeSome(t, name, text)
	}
	slices.Sort(times)
	if n := len(times); n > 0 {
		t.Logf("%d of %d compiled, median %v, 95th percentile %v, most %v: %v", n, len(files), times[n/2], times[n*95/100], times[n-1], why)
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
