package main

import (
	"context"
	"io"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/report"
)

// report says what an answer cost: as JSON on stdout, or as prose on stderr.
func (s *session) report(ctx context.Context, o *opened, m *spillway.Model, a *spillway.Answer) error {
	if s.flags.Quiet && !s.flags.JSON {
		return nil
	}
	r := s.newReport(ctx, o, m, a)
	if s.flags.JSON {
		return s.printJSON(r)
	}
	_, err := io.WriteString(s.stderr, "\n"+r.Prose())
	return err
}

// newReport collects what the rooms have counted.
func (s *session) newReport(ctx context.Context, o *opened, m *spillway.Model, a *spillway.Answer) *report.Report {
	r := &report.Report{
		Text: a.Text, PromptIDs: ints(a.PromptIDs), IDs: ints(a.IDs), FinishReason: a.FinishReason,
		Model:  modelReport(o.Checkpoint),
		Memory: memoryReport(o.rt, m),
		Speed: report.Speed{
			LoadSeconds:   m.LoadTime().Seconds(),
			PrefillTokens: len(a.PromptIDs) - a.CachedTokens, PrefillSeconds: a.Prefill.Seconds(),
			DecodeTokens: max(len(a.IDs)-1, 0), DecodeSeconds: a.Decode.Seconds(),
		},
	}
	work := workOf(m, r.Speed)
	r.IO = report.IO{RequiredBytes: work.Required, ReadBytes: work.Read, HitBytes: m.IO().Hit}
	return r
}

func ints(ids []int32) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}

func modelReport(c *spillway.Checkpoint) report.Model {
	l := c.Layout()
	return report.Model{
		Name: c.Name(), Family: l.Family, Parameters: l.Parameters, WeightBytes: c.Catalog().Bytes(), Source: c.Source(),
	}
}

func memoryReport(rt *spillway.Runtime, m *spillway.Model) report.Memory {
	r := report.Memory{Budget: rt.Memory(), LedgerPeak: rt.Ledger().Peak, Least: m.CurrentPlan().Least}
	if p, ok := machine.ReadProcess(); ok {
		r.RSSPeak = p.PeakRSS
	}
	if peak, ok := machine.CgroupPeak(); ok {
		r.CgroupPeak = &peak
	}
	return r
}

// workOf is what the model's sweeps did since it was started. The first one fills the memory: it
// reads every weight; the others at least what the budget does not hold.
func workOf(m *spillway.Model, speed report.Speed) plan.Work {
	io, p := m.IO(), m.CurrentPlan()
	w := plan.Work{
		Read: io.Read, Active: io.Passed, Seconds: speed.PrefillSeconds + speed.DecodeSeconds,
		Operations: float64(m.Layout().FlopsPerToken) * float64(speed.PrefillTokens+speed.DecodeTokens),
	}
	if io.Sweeps > 0 {
		w.Required = p.PinnedBytes + p.StreamedBytes + (io.Sweeps-1)*p.RequiredBytes()
	}
	return w
}
