package main

import (
	"errors"
	"fmt"
	"io"

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
	Pinned    int64           `json:"pinned_bytes"`
	Streamed  int64           `json:"streamed_bytes_per_sweep"`
	Predicted plannedForecast `json:"predicted"`
}

type plannedPools struct {
	Weights    int64 `json:"weights"`
	KV         int64 `json:"kv"`
	Activation int64 `json:"activation"`
	Staging    int64 `json:"staging"`
	Runtime    int64 `json:"runtime"`
}

type plannedForecast struct {
	Decode  float64 `json:"decode_tokens_per_second"`
	Prefill float64 `json:"prefill_tokens_per_second"`
	Limit   string  `json:"limit"`
}

func (c *planCommand) run(s *session) error {
	ctx, stop := s.interruptible()
	defer stop()
	o, err := s.openNamed(ctx, c.Model)
	if err != nil {
		return s.interrupted(ctx, err)
	}
	return s.interrupted(ctx, o.close(c.print(s, o)))
}

func (c *planCommand) print(s *session, o *opened) error {
	context := s.flags.Context
	if context == 0 {
		context = planContext
	}
	p, err := o.Plan(spillway.ModelOptions{Context: context, Exact: s.flags.Exact})
	if err != nil {
		return err
	}
	speeds, err := o.Measure(p, s.flags.Exact)
	if err != nil {
		return err
	}
	forecast := p.Predict(speeds)
	if s.flags.JSON {
		return s.printJSON(planned{
			Budget: p.Budget, Least: p.Least, Resident: p.Resident, Pinned: p.PinnedBytes, Streamed: p.StreamedBytes,
			Pools: plannedPools{
				Weights: p.Pools[budget.Weights], KV: p.Pools[budget.KV], Activation: p.Pools[budget.Activation],
				Staging: p.Pools[budget.Staging], Runtime: p.Pools[budget.Runtime],
			},
			Predicted: plannedForecast{Decode: forecast.Decode, Prefill: forecast.Prefill, Limit: forecast.Limit},
		})
	}
	return describePlan(s.stdout, o, p, context, speeds, forecast)
}

func describePlan(w io.Writer, o *opened, p *plan.Plan, context int, speeds plan.Machine, forecast plan.Prediction) error {
	var all []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		all = append(all, err)
	}
	line("%s: %s parameters, %s of weights, %d tokens of context", visible(o.Name(), 80), report.Count(o.Layout().Parameters),
		report.Bytes(o.Catalog().Bytes()), context)
	line("memory: cap %s; the least that works is %s", report.Bytes(p.Budget), report.CapBytes(p.Least))
	for pool, n := range p.Pools {
		line("  %-10s %s %10s", budget.Pool(pool), report.Bar(float64(n)/float64(p.Budget), 24), report.Bytes(n))
	}
	if p.Resident {
		line("all weights stay in memory once read")
	} else {
		line("%s of weights stay in memory, %s are read for every sweep", report.Bytes(p.PinnedBytes), report.Bytes(p.ReadBytes))
	}
	line("drive %s, memory %s, products %.0f Gop/s", report.Rate(speeds.Drive), report.Rate(speeds.Memory), speeds.Flops/1e9)
	line("at most %.3g tokens/s decoding, bound by the %s; %.3g tokens/s for prompts, in chunks of %d", forecast.Decode, forecast.Limit,
		forecast.Prefill, p.Chunk)
	return errors.Join(all...)
}
