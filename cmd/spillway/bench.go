package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/report"
)

type benchCommand struct {
	Model       string `arg:"" optional:"" help:"GGUF file, folder in Hugging Face layout, or known name. With --drive: a file or folder on the drive; default: the current folder."`
	Prefill     []int  `short:"p" help:"Prompt tokens; 0 leaves the test out. Default: 512." default:"512" placeholder:"N"`
	Decode      []int  `short:"n" help:"Tokens to generate; 0 leaves the test out. Default: 64." default:"64" placeholder:"N"`
	Batch       []int  `short:"b" help:"Sequences at a time. Default: 1." default:"1" placeholder:"N"`
	Depth       []int  `short:"d" help:"Tokens in the cache before. Default: 0." default:"0" placeholder:"N"`
	Repetitions int    `short:"r" help:"Runs of each test, after one to warm up. Default: 5." default:"5" placeholder:"N"`
	Drive       bool   `help:"Show what the drive gives, by size of requests and how many are in flight, as it was last measured."`
	Refresh     bool   `help:"With --drive: measure it again."`
	predictionFlag
}

func (*benchCommand) Help() string {
	return "Numbers may be lists, separated by commas: every combination is a test. Tokens are without meaning, and nothing ends an answer. " +
		"The roofline fraction is the time that the least possible work needs on this machine, measured beside the run, over the time taken.\n\n" +
		"With --json each row has its \"roofline\" {limit, fraction, drive_fraction, policy_fraction}, null where that is not known, and its \"io\" " +
		"{required_bytes, read_bytes, hit_bytes}, of the run in the middle.\n\n" +
		"--drive measures a drive by direct reads of a large file on it (or of one that it makes, of 256 MiB) and keeps the table for a week in the " +
		"user's cache folder, where plan finds it. With --json: {\"device\", \"measured\", \"direct\", \"cells\": [{request_bytes, depth, " +
		"bytes_per_second}], \"best\"}.\n\n" +
		"Examples:\n\n  spillway bench model.gguf -p 512 -n 64 -b 1,8 -d 0 -r 5\n\n  spillway bench --drive /models"
}

// A benchTest is one row: prompt or decode tokens of some sequences at a depth.
type benchTest struct {
	prefill, decode, batch, depth int
}

func (t benchTest) name() string {
	name := fmt.Sprintf("pp%d", t.prefill)
	if t.prefill == 0 {
		name = fmt.Sprintf("tg%d", t.decode)
	}
	if t.depth > 0 {
		name += fmt.Sprintf("@d%d", t.depth)
	}
	return name
}

// tokens is what one run of the test computes.
func (t benchTest) tokens() int { return t.batch * (t.prefill + t.decode) }

// positions is what a sequence needs of the cache.
func (t benchTest) positions() int { return t.depth + max(t.prefill, 1) + max(t.decode, 1) }

// benchTable is what `spillway bench --json` prints.
type benchTable struct {
	Rows   []benchRow   `json:"rows"`
	Cache  report.Cache `json:"cache"`
	Limits benchLimits  `json:"limits"`
	Policy string       `json:"policy,omitempty"` // of experts
}

// benchLimits are what the rows' fractions are of, measured beside the run with as many threads; 0: not measured.
type benchLimits struct {
	Threads  int           `json:"threads"`
	ISA      string        `json:"isa"`
	Drive    report.Figure `json:"drive_bytes_per_second"`
	Memory   report.Figure `json:"memory_bytes_per_second"`
	Floats   report.Figure `json:"float_operations_per_second"`
	Integers report.Figure `json:"integer_operations_per_second"`
}

func limitsOf(o *opened, speeds plan.Machine) benchLimits {
	return benchLimits{
		Threads: o.rt.Threads(), ISA: spillway.ISA(), Drive: report.Figure(speeds.Drive), Memory: report.Figure(speeds.Memory),
		Floats: report.Figure(speeds.FloatPeak), Integers: report.Figure(speeds.IntegerPeak),
	}
}

type benchRow struct {
	Test     string        `json:"test"`
	Batch    int           `json:"batch"`
	Depth    int           `json:"depth"`
	Speed    benchSpeed    `json:"tokens_per_second"`
	Roofline benchRoofline `json:"roofline"`
	IO       benchIO       `json:"io"`
}

type benchSpeed struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

type benchRoofline struct {
	Limit          string        `json:"limit"`
	Fraction       report.Figure `json:"fraction"`
	DriveFraction  report.Figure `json:"drive_fraction"`
	PolicyFraction report.Figure `json:"policy_fraction"`
}

// benchIO counts bytes of weights of the median run, as the report of a run does.
type benchIO struct {
	RequiredBytes int64 `json:"required_bytes"` // 0 if that is not known
	ReadBytes     int64 `json:"read_bytes"`
	HitBytes      int64 `json:"hit_bytes"`
}

// mostTokens is the most of anything that is counted in tokens.
const mostTokens = 1 << 24

func (r benchRoofline) text() string {
	if r.Fraction <= 0 {
		return "not measured"
	}
	return fmt.Sprintf("%3.0f %% of the %s", 100*r.Fraction, r.Limit)
}

func (c *benchCommand) tests() ([]benchTest, error) {
	if c.Repetitions < 1 || c.Repetitions > mostTokens {
		return nil, usagef("-r is %d; give a number from 1 to %d", c.Repetitions, mostTokens)
	}
	if slices.Max(append(slices.Concat(c.Prefill, c.Decode, c.Depth, c.Batch), 0)) > mostTokens {
		return nil, usagef("-p, -n, -d and -b take numbers up to %d", mostTokens)
	}
	if slices.Min(append(slices.Concat(c.Prefill, c.Decode, c.Depth), 0)) < 0 || len(c.Batch) == 0 || slices.Min(c.Batch) < 1 {
		return nil, usagef("-p, -n and -d take numbers from 0 on, -b from 1 on")
	}
	var all []benchTest
	for _, depth := range c.Depth {
		for _, batch := range c.Batch {
			for _, n := range c.Prefill {
				if n > 0 {
					all = append(all, benchTest{prefill: n, batch: batch, depth: depth})
				}
			}
			for _, n := range c.Decode {
				if n > 0 {
					all = append(all, benchTest{decode: n, batch: batch, depth: depth})
				}
			}
		}
	}
	if len(all) == 0 {
		return nil, usagef("there is nothing to measure: -p and -n are 0")
	}
	return all, nil
}

func (c *benchCommand) run(s *session) error {
	switch {
	case c.Drive:
		return c.runDrive(s)
	case c.Refresh:
		return usagef("--refresh goes with --drive")
	case c.Model == "":
		return usagef("there is no model to measure; with --drive none is needed")
	}
	tests, err := c.tests()
	if err != nil {
		return err
	}
	ctx, stop := s.interruptible()
	defer stop()
	o, err := s.openNamed(ctx, c.Model)
	if err != nil {
		return s.interrupted(ctx, err)
	}
	return s.interrupted(ctx, o.close(c.measure(ctx, s, o, tests)))
}

func (c *benchCommand) measure(ctx context.Context, s *session, o *opened, tests []benchTest) (err error) {
	if o.Embedding() {
		return errVectors(o)
	}
	options := spillway.ModelOptions{Context: s.flags.Context, Prediction: c.Prediction, ExpertLog: new(spillway.ExpertLog)}
	defer func() { err = errors.Join(err, options.ExpertLog.Close()) }()
	for _, t := range tests {
		options.ExpertLog.Tokens += int64(c.Repetitions+1) * int64(t.batch) * int64(t.positions())
		options.Sequences = max(options.Sequences, t.batch)
		if s.flags.Context == 0 {
			options.Context = max(options.Context, t.positions())
		}
	}
	s.tellTrained(o, options.Context)
	m, err := s.start(ctx, o, options)
	if err != nil {
		return shorter(err, "context", s.flags.Context)
	}
	results, err := c.runTests(ctx, s, o, m, tests)
	if err != nil {
		return errors.Join(err, m.Close())
	}
	p := m.CurrentPlan()
	table := benchTable{}
	table.Cache.Type, table.Cache.Lossy = m.Options().CacheType()
	if p.Experts != nil {
		table.Policy = m.Options().Policy
	}
	if err := m.Close(); err != nil {
		return err
	}
	speeds, err := o.Measure(p, s.flags.Exact)
	if err != nil {
		return err
	}
	table.Limits = limitsOf(o, speeds)
	for _, r := range results {
		row, err := r.row(speeds)
		if err != nil {
			s.tell(r.test.name() + ": " + unknown(err))
		}
		table.Rows = append(table.Rows, row)
	}
	return table.print(s, o, p)
}

// runTests runs one test after the other, and shows how far they are.
func (c *benchCommand) runTests(ctx context.Context, s *session, o *opened, m *spillway.Model, tests []benchTest) ([]benchResult, error) {
	results := make([]benchResult, 0, len(tests))
	bar := s.newProgress("")
	defer bar.end()
	for i, t := range tests {
		if s.flags.Verbose {
			fmt.Fprintf(s.stderr, "%s, %d sequences\n", t.name(), t.batch)
		}
		loaded := func() {}
		if i == 0 {
			loaded = s.watchLoading(o, m)
		}
		r, err := runTest(ctx, m, t, c.Repetitions, func(run int) {
			loaded()
			bar.say("%s, batch %d: run %d of %d", t.name(), t.batch, run, c.Repetitions)
		})
		loaded()
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// A benchResult is the runs of a test, from the slowest to the fastest.
type benchResult struct {
	test benchTest
	runs []benchRun
}

type benchRun struct {
	speed float64
	work  plan.Work
	span  span // where what had to be read is still to be found out
}

// row is the table's. An error says why what had to be read is not known, without which there is no fraction.
func (r benchResult) row(speeds plan.Machine) (row benchRow, err error) {
	median := r.runs[len(r.runs)/2]
	w := &median.work
	err = median.span.find(w)
	f := plan.RooflineOf(*w, speeds)
	return benchRow{
		Test: r.test.name(), Batch: r.test.batch, Depth: r.test.depth,
		Speed:    benchSpeed{Median: median.speed, Min: r.runs[0].speed, Max: r.runs[len(r.runs)-1].speed},
		Roofline: benchRoofline{f.Limit, report.Figure(f.Fraction), report.Figure(f.DriveFraction), report.Figure(f.PolicyFraction)},
		IO:       benchIO{max(w.Required, 0), w.Read, median.span.io.Hit},
	}, err
}

func runTest(ctx context.Context, m *spillway.Model, t benchTest, repetitions int, next func(run int)) (benchResult, error) {
	r := benchResult{test: t}
	for i := range repetitions + 1 {
		if i > 0 {
			next(i)
		}
		run, err := runOnce(ctx, m, t)
		if err != nil {
			return r, err
		}
		if i > 0 { // the first one warms up
			r.runs = append(r.runs, run)
		}
	}
	slices.SortFunc(r.runs, func(a, b benchRun) int {
		if a.speed < b.speed {
			return -1
		}
		return 1
	})
	return r, nil
}

// runOnce fills the caches to the depth, then times the test.
func runOnce(ctx context.Context, m *spillway.Model, t benchTest) (run benchRun, err error) {
	seats := make([]*spillway.Conversation, t.batch)
	for i := range seats {
		seats[i] = m.NewConversation()
		defer func() { err = errors.Join(err, seats[i].Close()) }()
	}
	if t.depth > 0 {
		if err := together(seats, func(i int) error { return generate(ctx, m, seats[i], i, t.depth, 1, t) }); err != nil {
			return run, err
		}
	}
	run.span = spanOf(m)
	before, start := m.IO(), time.Now()
	prompt := t.depth + max(t.prefill, 1)
	if err := together(seats, func(i int) error { return generate(ctx, m, seats[i], i, prompt, max(t.decode, 1), t) }); err != nil {
		return run, err
	}
	seconds := time.Since(start).Seconds()
	io := m.IO().Sub(before)
	run.span = span{log: run.span.log, from: run.span.to, to: spanOf(m).to, warm: true, io: io, why: run.span.why}
	run.speed = float64(t.tokens()) / seconds
	run.work = plan.Work{
		Required: min(required(m.CurrentPlan(), io.Passed, io.Sweeps), io.Read), Read: io.Read, Active: io.Passed, Seconds: seconds,
	}
	t.addWork(m, &run.work)
	if p := m.CurrentPlan(); p.Experts != nil {
		run.work.Required = p.ExpertWork(io.Read)
	}
	return run, nil
}

// addWork adds the operations of a run, and what it reads of the caches: a prompt's rows as if all came in one chunk.
func (t benchTest) addWork(m *spillway.Model, w *plan.Work) {
	prompt := t.depth + max(t.prefill, 1)
	last := prompt + max(t.decode, 1) - 1
	m.AddMatrices(w, t.batch*(last-t.depth), t.batch*max(t.decode, 1))
	for range t.batch {
		m.AddAttention(w, t.depth, prompt, true)
		m.AddAttention(w, prompt, last, false)
	}
}

func together(seats []*spillway.Conversation, f func(i int) error) error {
	errs := make([]error, len(seats))
	var group sync.WaitGroup
	for i := range seats {
		group.Go(func() { errs[i] = f(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// generate runs a prompt of n tokens without meaning and adds tokens, greedily. The context's length
// is the same for all requests of a test, so that what the depth has cached stays valid.
func generate(ctx context.Context, m *spillway.Model, seat *spillway.Conversation, seed, n, tokens int, t benchTest) error {
	a, err := m.Generate(ctx, spillway.Request{
		IDs: identityIDs(seed, n, m.Layout().Vocab), MaxTokens: tokens, Sampling: &spillway.Sampling{}, IgnoreEnd: true, Conversation: seat,
	}, nil)
	switch {
	case err != nil:
		return err
	case a.FinishReason == spillway.FinishCancelled:
		return context.Canceled
	case n > t.depth && a.CachedTokens != t.depth:
		return fmt.Errorf("%s: %d tokens were in the cache, not %d", t.name(), a.CachedTokens, t.depth)
	}
	return nil
}

func (table *benchTable) print(s *session, o *opened, p *plan.Plan) error {
	if s.flags.JSON {
		return s.printJSON(table)
	}
	where := "all weights in memory"
	if !p.Resident {
		where = report.Bytes(p.ReadBytes) + " read per sweep"
	}
	where += ", cache in " + table.Cache.Type
	if table.Cache.Lossy {
		where += " (lossy)"
	}
	if e := p.Experts; e != nil && !e.Resident() {
		where += fmt.Sprintf(", %d of %d experts in memory (policy %s)", e.Slots, e.Layers*e.Count, table.Policy)
	}
	text := fmt.Sprintf("%s, %s of weights, cap %s, %d threads (%s), %s\n", visible(o.Name(), 60), report.Bytes(o.Catalog().Bytes()),
		report.Bytes(p.Budget), o.rt.Threads(), spillway.ISA(), where)
	text += fmt.Sprintf("%-14s %5s %28s   %s\n", "test", "batch", "tokens/s (min … max)", "roofline")
	busy := false
	for _, r := range table.Rows {
		text += fmt.Sprintf("%-14s %5d %10.2f (%.2f … %.2f)   %s\n", r.Test, r.Batch, r.Speed.Median, r.Speed.Min, r.Speed.Max,
			r.Roofline.text())
		busy = busy || r.Roofline.Fraction > 1
	}
	limits := &table.Limits
	text += fmt.Sprintf("limits: drive %s, memory %s, multiply-adds on floats %s, on 16-bit integers %s\n", report.Rate(float64(limits.Drive)),
		report.Rate(float64(limits.Memory)), report.Operations(float64(limits.Floats)), report.Operations(float64(limits.Integers)))
	if busy {
		text += report.Busy + "\n"
	}
	_, err := io.WriteString(s.stdout, text)
	return err
}
