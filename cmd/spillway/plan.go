package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/report"
)

type planCommand struct {
	Model string `arg:"" help:"GGUF file, folder in Hugging Face layout, or known name."`
}

func (*planCommand) Help() string {
	return "Says what would go where under --memory, the least memory that works, and how fast it will be by what the drive and " +
		"the memory give now.\n\nExample:\n\n  spillway plan model.gguf --memory 1GiB --context 4096"
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
}

func (c *planCommand) run(s *session) error {
	return s.atOnce(func(ctx context.Context) error {
		o, err := s.openNamed(ctx, c.Model)
		if err != nil {
			return err
		}
		return o.close(c.print(s, o))
	})
}

func (c *planCommand) print(s *session, o *opened) error {
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
	speeds, err := o.Measure(p, s.flags.Exact)
	if err != nil {
		return err
	}
	forecast := known(p.Predict(speeds), speeds)
	var cache report.Cache
	cache.Type, cache.Lossy = options.CacheType()
	if s.flags.JSON {
		return s.printJSON(planned{
			Budget: p.Budget, Least: p.Least, Resident: p.Resident, Cache: cache, Pinned: p.PinnedBytes, Streamed: p.StreamedBytes,
			Pools: plannedPools{
				Weights: p.Pools[budget.Weights], KV: p.Pools[budget.KV], Activation: p.Pools[budget.Activation],
				Staging: p.Pools[budget.Staging], Runtime: p.Pools[budget.Runtime],
			},
			Predicted: plannedForecast{Decode: report.Figure(forecast.Decode), Prefill: report.Figure(forecast.Prefill), Limit: forecast.Limit},
			Experts:   expertsOf(p),
		})
	}
	return describePlan(s.stdout, o, p, tokens, cache, speeds, forecast)
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

func describePlan(w io.Writer, o *opened, p *plan.Plan, tokens int, cache report.Cache, speeds plan.Machine, forecast plan.Prediction) error {
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
	if p.Resident {
		line("all weights stay in memory once read")
	} else {
		line("%s of weights stay in memory, %s are read for every sweep", report.Bytes(p.PinnedBytes), report.Bytes(p.ReadBytes))
	}
	if e := p.Experts; e != nil && !p.Resident {
		line("%s", describeExperts(e))
	}
	line("drive %s, memory %s, products %s", report.Rate(speeds.Drive), report.Rate(speeds.Memory), report.Operations(speeds.Flops))
	if forecast.Decode > 0 {
		line("at most %s decoding, bound by the %s; prompts, in chunks of %d: %s", tokenSpeed(forecast.Decode), forecast.Limit,
			p.Chunk, tokenSpeed(forecast.Prefill))
	} else {
		line("the speed was not measured; prompts go in chunks of %d", p.Chunk)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func describeExperts(e *plan.Experts) string {
	text := fmt.Sprintf("%d layers of %d experts, %s in all; a token uses %d of each layer, %s", e.Layers, e.Count, report.Bytes(e.Bytes), e.Used,
		report.Bytes(e.Cycle))
	switch {
	case e.Slots == 0:
		text += "\nthere is no room to keep experts: they are read in pieces whenever they are used"
	case !e.CycleFits():
		text += fmt.Sprintf("\n%d experts stay in memory, fewer than one token uses: few of them will be used again before they must go", e.Slots)
	default:
		text += fmt.Sprintf("\n%d experts stay in memory", e.Slots)
	}
	return text
}
