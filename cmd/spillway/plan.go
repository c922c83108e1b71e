package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/policy"
	"github.com/spillway/spillway/internal/report"
	"github.com/spillway/spillway/internal/trace"
)

type planCommand struct {
	Model   string `arg:"" help:"GGUF file, folder in Hugging Face layout, or known name."`
	Trace   string `help:"Predict with the routing of a trace; without one, every expert is as likely as any other." placeholder:"FILE"`
	Refresh bool   `help:"Measure the drive's profile again, which is kept for a week."`
}

func (*planCommand) Help() string {
	return "Says what would go where under --memory, the least memory that works, and how fast it will be by what the drive and " +
		"the processor give now: products are timed as the model has them, and the drive for requests as the plan has them (see bench --drive). " +
		"Prefill is that of a prompt as long as the context, up to 512 tokens.\n\n" +
		"With --trace the trace is replayed with as many experts in memory as the plan has room for, by the policy of --policy: how many of an " +
		"answer's experts it finds there is said, with --json as predicted.expert_hit_rate.\n\n" +
		"Examples:\n\n  spillway plan model.gguf --memory 1GiB --context 4096\n\n  spillway plan olmoe.gguf --memory 8GiB --trace run.trace"
}

// planContext is the context that is planned for where --context does not say.
const planContext = 512

// planned is what `spillway plan --json` prints.
type planned struct {
	Budget    int64           `json:"budget"`
	Least     int64           `json:"least"`
	Resident  bool            `json:"resident"`
	Pools     plannedPools    `json:"pools"`
	Cache     report.Cache    `json:"cache"`
	Pinned    int64           `json:"pinned_bytes"`
	Streamed  int64           `json:"streamed_bytes_per_sweep"`
	Predicted plannedForecast `json:"predicted"`
	Experts   *plannedExperts `json:"experts,omitempty"`
}

// plannedExperts is about a mixture of experts.
type plannedExperts struct {
	Layers     int   `json:"layers"`      // that have experts
	Count      int   `json:"count"`       // of a layer
	Used       int   `json:"used"`        // by a token, of a layer
	Bytes      int64 `json:"bytes"`       // of all
	CycleBytes int64 `json:"cycle_bytes"` // of those that one token uses
	Slots      int   `json:"slots"`       // experts that find room in memory; 0: they pass through in tiles
	CycleFits  bool  `json:"cycle_fits"`
}

func expertsOf(p *plan.Plan) *plannedExperts {
	e := p.Experts
	if e == nil {
		return nil
	}
	return &plannedExperts{e.Layers, e.Count, e.Used, e.Bytes, e.Cycle, e.Slots, e.CycleFits()}
}

type plannedPools struct {
	Weights    int64 `json:"weights"`
	KV         int64 `json:"kv"`
	Activation int64 `json:"activation"`
	Staging    int64 `json:"staging"`
	Runtime    int64 `json:"runtime"`
}

type plannedForecast struct {
	Decode  report.Figure `json:"decode_tokens_per_second"`
	Prefill report.Figure `json:"prefill_tokens_per_second"`
	Limit   string        `json:"limit"`
	// HitRate is the share of an answer's experts that are in memory when they are needed, by the replay of --trace; nil without one.
	HitRate *float64 `json:"expert_hit_rate,omitempty"`
}

func (c *planCommand) run(s *session) error {
	return s.atOnce(func(ctx context.Context) error {
		o, err := s.openNamed(ctx, c.Model)
		if err != nil {
			return err
		}
		return o.close(c.print(ctx, s, o))
	})
}

// planPrompt is the longest prompt that a prediction is about.
const planPrompt = 512

// situation measures what a prediction is made of.
func (c *planCommand) situation(ctx context.Context, s *session, o *opened, p *plan.Plan, prompt int) (x plan.Case, err error) {
	x.Prompt = prompt
	if x.Routing, err = c.routing(ctx, s, o, p); err != nil {
		return x, err
	}
	var d *driveProfile
	if device := o.Drive(); device != 0 && !p.Resident {
		if d = cachedProfile(device); d == nil || c.Refresh {
			profile, err := o.DriveProfile(p)
			if err != nil {
				return x, err
			}
			if d = nil; len(profile.Cells) > 0 {
				d = newDriveProfile(device, true, profile)
				d.keep(s, device)
			}
		}
	}
	if x.Costs, err = o.Costs(p, s.flags.Exact); err != nil {
		return x, err
	}
	x.Machine, err = o.Measure(p, s.flags.Exact)
	x.Cells = d.cells()
	return x, err
}

// routing is what a trace says of how often the plan's slots have the experts that an answer needs.
func (c *planCommand) routing(ctx context.Context, s *session, o *opened, p *plan.Plan) (r plan.Routing, err error) {
	switch {
	case c.Trace == "":
		return r, nil
	case p.Experts == nil:
		return r, usagef("--trace: the model has no experts")
	}
	e := p.Experts
	loads := traceLoads{ctx: ctx, rt: o.rt}
	defer loads.release()
	t, err := loads.load(c.Trace)
	if err != nil {
		return r, fmt.Errorf("--trace: %w", err)
	}
	if h := t.Header; h.Layers != e.Layers || h.Experts != e.Count || h.Used != e.Used {
		return r, usagef("--trace: %s has %d layers with %d experts, %d of them used, the model has %d with %d and %d", visible(c.Trace, 200),
			h.Layers, h.Experts, h.Used, e.Layers, e.Count, e.Used)
	}
	r.Known = true
	r.Rates = t.Rates()
	if e.Slots == 0 {
		return r, nil
	}
	name, file := s.flags.policyName()
	setting := trace.Setting{Policies: []string{cmp.Or(name, policy.Default)}, Slots: []int{e.Slots}, Threads: o.rt.Threads()}
	if file != "" {
		if setting.Profile, err = loads.profile(file, t.Shape(), "--policy"); err != nil {
			return r, err
		}
	}
	outcomes, err := t.Replay(ctx, setting)
	if err == nil {
		r.Hits = outcomes[0].AnswerHitRate()
	}
	return r, err
}

func (c *planCommand) print(ctx context.Context, s *session, o *opened) error {
	tokens := s.flags.Context
	if tokens == 0 {
		tokens = planContext
	}
	options := spillway.ModelOptions{Context: tokens, Exact: s.flags.Exact, KV: s.flags.KV}
	s.tellTrained(o, s.flags.Context)
	p, err := o.Plan(options)
	if err != nil {
		return shorter(err, "context", s.flags.Context)
	}
	situation, err := c.situation(ctx, s, o, p, min(tokens, planPrompt))
	if err != nil {
		return err
	}
	speeds := situation.Machine
	forecast := known(p.Predict(situation), speeds)
	var cache report.Cache
	cache.Type, cache.Lossy = options.CacheType()
	if s.flags.JSON {
		return s.printJSON(planned{
			Budget: p.Budget, Least: p.Least, Resident: p.Resident, Cache: cache, Pinned: p.PinnedBytes, Streamed: p.StreamedBytes,
			Pools: plannedPools{
				Weights: p.Pools[budget.Weights], KV: p.Pools[budget.KV], Activation: p.Pools[budget.Activation],
				Staging: p.Pools[budget.Staging], Runtime: p.Pools[budget.Runtime],
			},
			Predicted: forecastOf(forecast, p.Experts, situation.Routing),
			Experts:   expertsOf(p),
		})
	}
	return describePlan(s.stdout, o, p, tokens, cache, speeds, forecast, c.describeExperts(s, p, situation.Routing))
}

func forecastOf(f plan.Prediction, e *plan.Experts, r plan.Routing) plannedForecast {
	x := plannedForecast{Decode: report.Figure(f.Decode), Prefill: report.Figure(f.Prefill), Limit: f.Limit}
	if e != nil && r.Known {
		rate := e.HitRate(r)
		x.HitRate = &rate
	}
	return x
}

// known leaves out the speeds that something bounds which was not measured.
func known(f plan.Prediction, m plan.Machine) plan.Prediction {
	if m.Memory <= 0 {
		f.Decode = 0
	}
	if m.Flops <= 0 {
		f.Prefill = 0
	}
	return f
}

// tokenSpeed writes tokens per second; 0 was not measured.
func tokenSpeed(v float64) string {
	if v <= 0 {
		return "not measured"
	}
	return report.Speedy(1, 1/v) + " tokens/s"
}

func describePlan(w io.Writer, o *opened, p *plan.Plan, tokens int, cache report.Cache, speeds plan.Machine, forecast plan.Prediction,
	experts string,
) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s: %s parameters, %s of weights, %d tokens of context", visible(o.Name(), 80), report.Count(o.Layout().Parameters),
		report.Bytes(o.Catalog().Bytes()), tokens)
	line("memory: cap %s; the least that works is %s", report.Bytes(p.Budget), report.CapBytes(p.Least))
	if cache.Lossy {
		line("the key-value cache is lossy: %s", cache.Type)
	}
	for pool, n := range p.Pools {
		line("  %-10s %s %10s", budget.Pool(pool), report.Bar(float64(n)/float64(p.Budget), 24), report.Bytes(n))
	}
	switch {
	case p.Resident:
		line("all weights stay in memory once read")
	case p.Experts != nil:
		line("%s of the weights outside experts stay in memory, %s of them are read for every sweep", report.Bytes(p.PinnedBytes), report.Bytes(p.ReadBytes))
	default:
		line("%s of weights stay in memory, %s are read for every sweep", report.Bytes(p.PinnedBytes), report.Bytes(p.ReadBytes))
	}
	b.WriteString(experts)
	line("drive %s, memory %s, products %s", report.Rate(speeds.Drive), report.Rate(speeds.Memory), report.Operations(speeds.Flops))
	if forecast.Decode > 0 {
		line("about %s decoding, bound by the %s; prompts, in chunks of %d: %s", tokenSpeed(forecast.Decode), forecast.Limit,
			p.Chunk, tokenSpeed(forecast.Prefill))
	} else {
		line("the speed was not measured; prompts go in chunks of %d", p.Chunk)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// describeExperts says what becomes of the experts of a mixture, in whole lines.
func (c *planCommand) describeExperts(s *session, p *plan.Plan, r plan.Routing) string {
	switch {
	case p.Experts == nil || p.Resident && !r.Known:
		return ""
	case p.Resident:
		return "whatever the trace has: every expert is in memory once it was read\n"
	}
	name, _ := s.flags.policyName()
	return placeOfExperts(p.Experts) + readsOfExperts(p.Experts, r, cmp.Or(name, policy.Default))
}

func placeOfExperts(e *plan.Experts) string {
	text := fmt.Sprintf("%d layers of %d experts, %s in all; a token uses %d of each layer, %s\n", e.Layers, e.Count, report.Bytes(e.Bytes), e.Used,
		report.Bytes(e.Cycle))
	switch {
	case e.Slots == 0:
		return text + "there is no room to keep experts: they are read in pieces whenever they are used\n"
	case !e.CycleFits():
		return text + fmt.Sprintf("%d experts stay in memory, fewer than one token uses: few of them will be used again before they must go\n", e.Slots)
	}
	return text + fmt.Sprintf("%d experts stay in memory\n", e.Slots)
}

// readsOfExperts says how many bytes of experts a token will read, and where that is known from.
func readsOfExperts(e *plan.Experts, r plan.Routing, policy string) string {
	hits := e.HitRate(r)
	text := fmt.Sprintf("about %s of experts are read for every token of an answer: %.0f %% of those that it needs are in memory", report.Bytes(int64((1-hits)*float64(e.Cycle)+0.5)), 100*hits)
	switch {
	case !r.Known:
		return text + ", if each is as likely as any other (--trace says how likely they are)\n"
	case e.Slots == 0:
		return text + ", whatever the trace has\n"
	}
	return text + fmt.Sprintf(" by the trace's replay (policy %s)\n", policy)
}
