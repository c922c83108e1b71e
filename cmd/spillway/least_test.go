package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/report"
)

// A run with slots for some experts tells what had to be read: what its trace's replay says of the experts, and no more than was read.
func TestRequiredExperts(t *testing.T) {
	dir := t.TempDir()
	model, file := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "run.trace")
	s, out := testSession(t, nil)
	if code := s.main([]string{"synth", "storyteller-moe", "--type", "q8_0", "--layers", "40", "--zipf", "2", "--out", model}); code != exitFine {
		t.Fatal(out)
	}
	memory := leastOf(t, model)
	s, out = testSession(t, nil)
	if code := s.main([]string{"run", model, "Once", "--max-tokens", "40", "--memory", memory, "--trace", file, "--json"}); code != exitFine {
		t.Fatal(out)
	}
	var r struct {
		Model struct {
			Bytes int64 `json:"weight_bytes"`
		}
		IO struct {
			Required int64 `json:"required_bytes"`
			Read     int64 `json:"read_bytes"`
		}
		Roofline struct {
			Fraction       *float64
			PolicyFraction *float64 `json:"policy_fraction"`
		}
		Experts struct{ Needed, Slots, All int64 }
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Experts.Slots == 0 || r.Experts.Slots >= r.Experts.All || r.IO.Required <= 0 || r.IO.Required > r.IO.Read {
		t.Fatalf("%+v", r)
	}
	if p := r.Roofline.PolicyFraction; p == nil || math.Abs(*p-float64(r.IO.Required)/float64(r.IO.Read)) > 1e-9 || r.Roofline.Fraction == nil {
		t.Errorf("fractions %+v of %+v", r.Roofline, r.IO)
	}
	s, out = testSession(t, nil)
	if code := s.main([]string{"trace", "replay", file, "--sizes", fmt.Sprint(r.Experts.Slots), "--policies", "lru", "--json"}); code != exitFine {
		t.Fatal(out)
	}
	var x replayed
	if err := json.Unmarshal(out.Bytes(), &x); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	row, expert := x.Rows[0], x.Trace.ExpertBytes[0]
	least := (row.Demands - int64(math.Round(row.Belady*float64(row.Demands)))) * expert
	// Beside it every weight that is no expert's, but for rows of the embedding that nobody asked for.
	trunk := r.Model.Bytes - r.Experts.All*expert
	if rest := r.IO.Required - least; row.Demands != r.Experts.Needed || rest < trunk/2 || rest > trunk+trunk/8 {
		t.Errorf("%d bytes had to be read, %d of experts and %d of %d others: %+v", r.IO.Required, least, rest, trunk, row)
	}
	benchRequired(t, model, memory)
	planTraced(t, model, memory, file)
}

// planTraced checks that a plan says what the replay of its trace gives with as many slots as it has.
func planTraced(t *testing.T, model, memory, file string) {
	t.Helper()
	s, out := testSession(t, nil)
	if code := s.main([]string{"plan", model, "--context", "64", "--memory", memory, "--trace", file, "--json"}); code != exitFine {
		t.Fatal(out)
	}
	var p planned
	if err := json.Unmarshal(out.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s, out = testSession(t, nil)
	if code := s.main([]string{"trace", "replay", file, "--sizes", fmt.Sprint(p.Experts.Slots), "--policies", "adaptive", "--json"}); code != exitFine {
		t.Fatal(out)
	}
	var x replayed
	if err := json.Unmarshal(out.Bytes(), &x); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := x.Rows[0].AnswerHitRate; p.Predicted.HitRate == nil || want <= 0 || math.Abs(*p.Predicted.HitRate-want) > 1e-9 {
		t.Errorf("hit rate %v, want %v", p.Predicted.HitRate, want)
	}
	s, out = testSession(t, nil)
	if code := s.main([]string{"plan", model, "--context", "64", "--memory", memory, "--trace", file}); code != exitFine {
		t.Fatal(out)
	}
	for _, line := range []string{ // another plan may have another slot
		`: [1-9]\d? % of those that it needs are in memory by the trace's replay \(policy adaptive\)\n`, ` of the weights outside experts stay in memory, `,
	} {
		if !regexp.MustCompile(line).Match(out.Bytes()) {
			t.Errorf("%s, want %s", out, line)
		}
	}
}

// What a token reads of experts is said with where it is known from.
func TestReadsOfExperts(t *testing.T) {
	e := &plan.Experts{Layers: 2, Count: 8, Used: 2, Bytes: 16 << 20, Cycle: 4 << 20, Slots: 4}
	for _, c := range []struct {
		slots   int
		routing plan.Routing
		want    string
	}{
		{4, plan.Routing{}, "about 3 MiB of experts are read for every token of an answer: 25 % of those that it needs are in memory, if each is as likely as any other (--trace says how likely they are)\n"},
		{4, plan.Routing{Known: true, Hits: 0.5}, "about 2 MiB of experts are read for every token of an answer: 50 % of those that it needs are in memory by the trace's replay (policy lru)\n"},
		{0, plan.Routing{Known: true}, "about 4 MiB of experts are read for every token of an answer: 0 % of those that it needs are in memory, whatever the trace has\n"},
	} {
		e.Slots = c.slots
		if got := readsOfExperts(e, c.routing, "lru"); got != c.want {
			t.Errorf("got  %swant %s", got, c.want)
		}
	}
}

// benchRequired checks that bench knows what had to be read.
func benchRequired(t *testing.T, model, memory string) {
	t.Helper()
	s, out := testSession(t, nil)
	if code := s.main([]string{"bench", model, "-p", "0", "-n", "20", "-r", "2", "--memory", memory, "--json"}); code != exitFine {
		t.Fatal(out)
	}
	var table benchTable
	if err := json.Unmarshal(out.Bytes(), &table); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, io := table.Rows[0].Roofline, table.Rows[0].IO
	if f.Fraction <= 0 || f.DriveFraction < f.Fraction || math.Abs(float64(f.PolicyFraction)-float64(io.RequiredBytes)/float64(io.ReadBytes)) > 1e-9 {
		t.Errorf("%+v", table.Rows[0])
	}
	if io.RequiredBytes <= 0 || io.ReadBytes < io.RequiredBytes || io.HitBytes <= 0 {
		t.Errorf("%+v", io)
	}
}

// Where the log knows nothing there are no fractions, but a reason.
func TestRequiredUnknown(t *testing.T) {
	w := plan.Work{Required: -1, Read: 1 << 20, Seconds: 1}
	r := &report.Report{}
	if err := (span{}).fill(r, &w); err != nil || w.Required != -1 || r.IO.RequiredBytes != 0 {
		t.Errorf("without a log: %v, %+v", err, w)
	}
	err := span{log: new(spillway.ExpertLog), to: 5}.fill(r, &w)
	if err == nil || w.Required != -1 || r.IO.RequiredBytes != 0 || !strings.Contains(unknown(err), "no experts were logged") {
		t.Errorf("an empty log: %v, %+v", err, w)
	}
	if f := plan.RooflineOf(w, plan.Machine{Drive: 1 << 20, Memory: 1 << 30}); f.Fraction != 0 || f.PolicyFraction != 0 || f.DriveFraction == 0 {
		t.Errorf("%+v", f)
	}
	w.Required = 7
	if err := (span{log: new(spillway.ExpertLog)}).fill(r, &w); err != nil || r.IO.RequiredBytes != 7 {
		t.Errorf("what is known already: %v, %+v", err, r.IO)
	}
}

// Where no expert has room, what had to be read is unknown, and the JSON says why.
func TestRequiredWithoutSlots(t *testing.T) {
	s, out := testSession(t, nil)
	s.flags = globals{Memory: "128MiB", JSON: true}
	s.told = map[string]bool{unknown(errNoSlots): true} // it would be on stderr, which is the same here
	o, err := s.open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is measured then
	none := span{why: whyUnlogged(&plan.Experts{Layers: 1, Count: 8, Used: 2})}
	if err := o.close(s.report(ctx, o, &report.Report{}, &plan.Plan{}, plan.Work{Required: -1}, none)); err != nil {
		t.Fatal(err)
	}
	var r struct{ Notes []string }
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !slices.Contains(r.Notes, unknown(errNoSlots)) {
		t.Errorf("%q", r.Notes)
	}
	if err := whyUnlogged(&plan.Experts{Layers: 1, Count: 8, Used: 2, Slots: 3}); err != nil {
		t.Error(err)
	}
}

// leastOf is the least memory for a model and a few MiB, as --memory has it.
func leastOf(t *testing.T, model string) string {
	t.Helper()
	s, _ := testSession(t, nil)
	s.flags = globals{Memory: "1MiB"}
	o, err := s.open(t.Context(), modelPath(model))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.start(t.Context(), o, spillway.ModelOptions{Context: 64})
	var small *spillway.TooSmallError
	if err = o.close(err); !errors.As(err, &small) {
		t.Fatal(err)
	}
	return fmt.Sprintf("%dMiB", small.Least>>20+24)
}
