package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/policy"
	"github.com/spillway/spillway/internal/report"
	"github.com/spillway/spillway/internal/trace"
)

type traceCommand struct {
	Record traceRecord `cmd:"" help:"Run a prompt, and write which experts each step chose."`
	Replay traceReplay `cmd:"" help:"What cache policies would have hit, for several sizes, with Belady's optimum beside."`
	Report traceReport `cmd:"" help:"One HTML page: hit curves, heat by layer and expert, reuse distances."`
}

func (*traceCommand) Help() string {
	return "A trace says which experts of a mixture-of-experts model each step of a run chose. JSON lines with " +
		"{\"conversation\", \"phase\": \"prefill\" or \"decode\", \"experts\": [[…] by layer]} for each token will do too, also compressed by gzip."
}

// traceSettings are what both commands take.
type traceSettings struct {
	File     string   `arg:"" help:"The trace." placeholder:"FILE"`
	Sizes    []string `help:"Room for experts: a share of all of them, a size (where the trace knows theirs), or a number of experts. Several by commas. Default: some shares." placeholder:"25%,4GiB,512"`
	Policies []string `help:"Policies, by commas: static, lru, lfu, adaptive." default:"static,lru,lfu,adaptive" placeholder:"NAMES"`
	Profile  string   `help:"Trace whose busiest experts the policy static keeps. Default: the trace itself, which is hindsight." placeholder:"FILE"`
}

type traceReplay struct{ traceSettings }

func (*traceReplay) Help() string {
	return "Columns: how often a demanded expert was in memory; the same in steps with rows of answers; Belady's optimum, which knows the " +
		"future; and the policy fraction, the least that any policy must read ÷ what this one read. Sizes of experts that differ from layer to " +
		"layer do not enter the optimum. With --json: {\"trace\": {model, layers, experts, used, steps, rows, expert_bytes}, \"rows\": [{policy, slots, " +
		"memory_bytes, demands, hits, hit_rate, answer_hit_rate, belady_hit_rate, belady_by_layer_hit_rate, demanded_bytes, read_bytes, " +
		"policy_fraction}]}; figures that the trace does not know are null.\n\nExample:\n\n  spillway trace replay run.trace --sizes 2GiB,4GiB,8GiB --policies lru,adaptive"
}

type traceReport struct {
	traceSettings
	Out   string `help:"HTML file to write; - for stdout. Default: the trace's name with .html behind it, in the current folder." placeholder:"FILE"`
	Force bool   `help:"Replace what is there."`
}

func (*traceReport) Help() string {
	return "With --json it says on stdout which file it wrote: {\"path\"}.\n\nExample:\n\n  spillway trace report run.trace --out run.html"
}

// traceUnused are the flags that mean nothing to these commands.
func traceUnused() []string { return []string{"context", "exact", "kv", "policy"} }

func (*traceReplay) unused() []string { return traceUnused() }
func (*traceReport) unused() []string { return traceUnused() }

func (c *traceReplay) run(s *session) error {
	return c.replayed(s, replaySizes, func(t *trace.Trace, outcomes []trace.Outcome) error {
		if s.flags.JSON {
			return s.printJSON(replayedTrace(t, outcomes))
		}
		return printReplay(s.stdout, t, outcomes)
	})
}

func (c *traceReport) run(s *session) error {
	out := c.Out
	if out == "" {
		out = filepath.Base(c.File) + ".html"
	}
	if info, err := os.Stat(out); out != "-" && err == nil && !c.Force && info.Mode().IsRegular() {
		return fmt.Errorf("%s is there already; --force replaces it", visible(out, 200))
	}
	return c.replayed(s, reportSizes, func(t *trace.Trace, outcomes []trace.Outcome) error {
		var page bytes.Buffer
		if err := t.Page(&page, "Experts: "+visible(c.File, 200), outcomes); err != nil {
			return err
		}
		if out == "-" {
			_, err := s.stdout.Write(page.Bytes())
			return err
		}
		if err := writeMode(out, page.Bytes(), 0o666); err != nil { // less what the umask takes
			return err
		}
		switch {
		case s.flags.JSON:
			return s.printJSON(struct {
				Path string `json:"path"`
			}{out})
		case !s.flags.Quiet:
			fmt.Fprintf(s.stderr, "%s: %s\n", visible(out, 200), report.Bytes(int64(page.Len())))
		}
		return nil
	})
}

// replayed loads the trace in leased memory, replays it, and hands on what came out. sizes are those where --sizes
// does not say.
func (c *traceSettings) replayed(s *session, sizes string, show func(*trace.Trace, []trace.Outcome) error) error {
	ctx, stop := s.interruptible()
	defer stop()
	if c.Sizes == nil {
		c.Sizes = strings.Split(sizes, ",")
	}
	rt, err := s.runtime()
	if err != nil {
		return err
	}
	loads := traceLoads{ctx: ctx, rt: rt}
	t, err := loads.load(c.File)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the trace: %w", err)
	}
	var profile []int64
	if err == nil && c.Profile != "" {
		profile, err = loads.profile(c.Profile, t.Shape(), "--profile")
	}
	var outcomes []trace.Outcome
	if err == nil {
		outcomes, err = c.replay(ctx, rt, t, profile)
	}
	if err == nil {
		err = show(t, outcomes)
	}
	loads.release()
	return s.interrupted(ctx, errors.Join(err, rt.Close()))
}

func (c *traceSettings) replay(ctx context.Context, rt *spillway.Runtime, t *trace.Trace, profile []int64) ([]trace.Outcome, error) {
	slots := make([]int, len(c.Sizes))
	for i, size := range c.Sizes {
		var err error
		if slots[i], err = slotsOf(size, t); err != nil {
			return nil, usagef("--sizes: %w", err)
		}
	}
	for _, name := range c.Policies {
		if _, err := policy.New(name, t.Shape(), t.Heat()); err != nil {
			return nil, usagef("--policies: %w", err)
		}
	}
	return t.Replay(ctx, trace.Setting{Policies: c.Policies, Slots: slots, Profile: profile, Threads: rt.Threads()})
}

// Shares where --sizes does not say: few for a table, more for a curve.
const (
	replaySizes = "6.25%,12.5%,25%,37.5%,50%,75%"
	reportSizes = "3.125%,6.25%,9.375%,12.5%,18.75%,25%,31.25%,37.5%,50%,62.5%,75%,87.5%,100%"
)

// slotsOf reads one of --sizes.
func slotsOf(size string, t *trace.Trace) (int, error) {
	shape := t.Shape()
	all := shape.Layers * shape.Experts
	n, err := strconv.Atoi(size)
	if share, ok := strings.CutSuffix(size, "%"); ok {
		var v float64
		v, err = strconv.ParseFloat(share, 64)
		if err != nil || !(v > 0 && v <= 100) {
			return 0, fmt.Errorf("%q is no share between 0%% and 100%%", size)
		}
		n = max(int(v/100*float64(all)), 1)
	} else if err != nil {
		var bytes int64
		if bytes, err = machine.ParseSize(size); err != nil {
			return 0, err
		}
		if t.SlotBytes() == 0 {
			return 0, fmt.Errorf("%s: this trace does not know how large experts are; give shares such as 25%%, or numbers of experts", size)
		}
		n = int(min(bytes/t.SlotBytes(), int64(all)))
	}
	if n < 1 {
		return 0, fmt.Errorf("%q has no room for an expert", size)
	}
	return min(n, all), nil
}

// traceLoads loads traces on leases.
type traceLoads struct {
	ctx      context.Context
	rt       *spillway.Runtime
	releases []func()
}

func (l *traceLoads) room(n int64) error {
	if err := context.Cause(l.ctx); err != nil {
		return err
	}
	release, err := l.rt.Reserve(n, "the trace")
	if err == nil {
		l.releases = append(l.releases, release)
	}
	return err
}

func (l *traceLoads) release() {
	for _, f := range l.releases {
		f()
	}
}

func (l *traceLoads) load(name string) (*trace.Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var t *trace.Trace
	src, err := trace.Open(f)
	if err == nil {
		t, err = trace.Load(src, l.room)
	}
	var damaged *trace.FormatError
	if errors.As(err, &damaged) {
		err = &checkpoint.FormatError{Path: name, What: damaged.Error()}
	}
	return t, err
}

// profile is the heat of another trace, which flag names.
func (l *traceLoads) profile(name string, s policy.Shape, flag string) ([]int64, error) {
	t, err := l.load(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if t.Shape() != s {
		return nil, usagef("%s: %s has %d layers with %d experts, not %d with %d", flag, visible(name, 200), t.Header.Layers, t.Header.Experts, s.Layers, s.Experts)
	}
	return t.Heat(), nil
}

func printReplay(w io.Writer, t *trace.Trace, outcomes []trace.Outcome) error {
	var b strings.Builder
	h := t.Header
	if h.Model.Name != "" {
		fmt.Fprintf(&b, "%s: ", visible(h.Model.Name, 80))
	}
	fmt.Fprintf(&b, "%d experts in each of %d layers, %d used by a row; %s, %s\n", h.Experts, h.Layers, h.Used, count(t.Steps, "step"), count(t.Rows, "row"))
	table := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	known := t.SlotBytes() > 0
	memory, read := "", ""
	if known {
		memory, read = "memory\t", "read\t"
	}
	fmt.Fprintf(table, "slots\t%spolicy\thits\tin answers\tbelady\tpolicy fraction\t%s\n", memory, read)
	for _, o := range outcomes {
		if known {
			memory, read = report.Bytes(int64(o.Slots)*t.SlotBytes())+"\t", report.Bytes(o.ReadBytes)+"\t"
		}
		fmt.Fprintf(table, "%d\t%s%s\t%.1f %%\t%.1f %%\t%.1f %%\t%.2f\t%s\n", o.Slots, memory, o.Policy, 100*o.HitRate(), 100*o.AnswerHitRate(),
			100*o.OptimalHitRate(), o.PolicyFraction(), read)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(outcomes, func(o trace.Outcome) bool { return o.AnswerHitRate() > o.OptimalHitRate() }) {
		b.WriteString("hits and belady count all steps; in answers counts those with rows of answers alone, and may be higher than both\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// replayed is what `spillway trace replay --json` prints.
type replayed struct {
	Trace replayedFacts `json:"trace"`
	Rows  []replayedRow `json:"rows"`
}

type replayedFacts struct {
	Model       trace.Model `json:"model"`
	Layers      int         `json:"layers"`
	Experts     int         `json:"experts"`
	Used        int         `json:"used"`
	Steps       int         `json:"steps"`
	Rows        int         `json:"rows"`
	ExpertBytes []int64     `json:"expert_bytes"`
}

type replayedRow struct {
	Policy         string  `json:"policy"`
	Slots          int     `json:"slots"`
	Memory         *int64  `json:"memory_bytes"`
	Demands        int64   `json:"demands"`
	Hits           int64   `json:"hits"`
	HitRate        float64 `json:"hit_rate"`
	AnswerHitRate  float64 `json:"answer_hit_rate"`
	Belady         float64 `json:"belady_hit_rate"`
	BeladyByLayer  float64 `json:"belady_by_layer_hit_rate"`
	Demanded       *int64  `json:"demanded_bytes"`
	Read           *int64  `json:"read_bytes"`
	PolicyFraction float64 `json:"policy_fraction"`
}

func replayedTrace(t *trace.Trace, outcomes []trace.Outcome) replayed {
	h := t.Header
	r := replayed{Trace: replayedFacts{h.Model, h.Layers, h.Experts, h.Used, t.Steps, t.Rows, h.ExpertBytes}}
	for _, o := range outcomes {
		row := replayedRow{
			Policy: o.Policy, Slots: o.Slots, Demands: o.Demands, Hits: o.Hits, HitRate: o.HitRate(), AnswerHitRate: o.AnswerHitRate(),
			Belady: o.OptimalHitRate(), BeladyByLayer: o.OptimalByLayerHitRate(), PolicyFraction: o.PolicyFraction(),
		}
		if size := t.SlotBytes(); size > 0 {
			memory := int64(o.Slots) * size
			row.Memory, row.Demanded, row.Read = &memory, &o.DemandBytes, &o.ReadBytes
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}
