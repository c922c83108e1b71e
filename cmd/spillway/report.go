package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/report"
)

// newReport collects what the rooms have counted. The model is still open.
func newReport(o *opened, m *spillway.Model, a *spillway.Answer) *report.Report {
	r := &report.Report{
		Text: a.Text, PromptIDs: ints(a.PromptIDs), IDs: ints(a.IDs), FinishReason: a.FinishReason,
		Model: modelReport(o.Checkpoint),
		Speed: report.Speed{
			LoadSeconds:   m.LoadTime().Seconds(),
			PrefillTokens: len(a.PromptIDs) - a.CachedTokens, PrefillSeconds: a.Prefill.Seconds(),
			DecodeTokens: max(len(a.IDs)-1, 0), DecodeSeconds: a.Decode.Seconds(),
		},
		Notes: notes(o.Checkpoint),
	}
	if o.template != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("the chat template is %s (--chat-template)", visible(o.template, 80)))
	}
	if a.Content != a.Text {
		r.Content, r.Reasoning = a.Content, a.Reasoning
	}
	if len(a.ToolCalls) > 0 {
		r.ToolCalls = a.ToolCalls
	}
	r.Cache.Type, r.Cache.Lossy = m.Options().CacheType()
	if r.Cache.Lossy {
		r.Notes = append(r.Notes, fmt.Sprintf("the key-value cache is lossy: %s (--kv)", r.Cache.Type))
	}
	return r
}

// expertsReport says what became of the experts that a run needed.
func expertsReport(e *plan.Experts, m *spillway.Model) *report.Experts {
	io := m.IO()
	r := &report.Experts{Needed: io.Experts, Hits: io.ExpertHits, Slots: e.Slots, All: e.Layers * e.Count, Policy: m.Options().Policy}
	if io.Guesses > 0 {
		r.Prediction = &report.Prediction{
			Read: io.Guesses, Used: io.GuessesUsed, Dropped: io.GuessesDropped, ReadBytes: io.Guessed, Off: io.GuessesOff > 0,
		}
	}
	return r
}

// notes are what a user should hear once about a model.
func notes(c *spillway.Checkpoint) []string {
	var all []string
	if c.DefaultTemplate() {
		all = append(all, fmt.Sprintf("the model has no chat template; %s was used (--chat-template chooses another one, --raw leaves it out)", c.TemplateName()))
	}
	return all
}

// report says what an answer cost: as JSON on stdout, or as prose on stderr. The model is closed by
// now, so that its memory is free for measurements. all is what it ran, where what had to be read is still to be found out.
func (s *session) report(ctx context.Context, o *opened, r *report.Report, p *plan.Plan, w plan.Work, all span) error {
	if s.flags.Quiet && !s.flags.JSON {
		return nil
	}
	if err := all.fill(r, &w); err != nil {
		r.Notes = append(r.Notes, unknown(err))
		if s.flags.JSON {
			s.tell(unknown(err))
		}
	}
	if ctx.Err() == nil && r.FinishReason != spillway.FinishError {
		speeds, err := o.Measure(p, s.flags.Exact)
		if err != nil {
			return err
		}
		f := plan.RooflineOf(w, speeds)
		r.Roofline = report.Roofline{
			Limit: f.Limit, Fraction: report.Figure(f.Fraction), DriveFraction: report.Figure(f.DriveFraction), PolicyFraction: report.Figure(f.PolicyFraction),
		}
		r.IO.DriveBytesPerSecond = report.Figure(speeds.Drive)
	}
	r.Memory = memoryReport(o.rt, p)
	if s.flags.JSON {
		return s.printJSON(r)
	}
	_, err := io.WriteString(s.stderr, "\n"+r.Prose())
	return err
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
		Name: c.Name(), Family: l.Family, Parameters: l.Parameters, WeightBytes: c.Catalog().Bytes(), Source: c.Source(), ChatTemplate: c.TemplateName(),
	}
}

func memoryReport(rt *spillway.Runtime, plan *plan.Plan) report.Memory {
	r := report.Memory{Budget: rt.Memory(), LedgerPeak: rt.Ledger().Peak, Least: plan.Least}
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
func workOf(m *spillway.Model, a *spillway.Answer) plan.Work {
	io, p := m.IO(), m.CurrentPlan()
	w := plan.Work{
		Read: io.Read, Active: io.Passed, Seconds: (a.Prefill + a.Decode).Seconds(),
	}
	prompt := len(a.PromptIDs)
	last := prompt + max(len(a.IDs)-1, 0)
	m.AddMatrices(&w, last-a.CachedTokens, len(a.IDs))
	m.AddAttention(&w, a.CachedTokens, prompt, true)
	m.AddAttention(&w, prompt, last, false)
	if p.Experts != nil {
		w.Required = p.ExpertWork(w.Read)
		return w
	}
	// The first sweep that passes a weight reads it. A plan may hold a little more than what the budget has beyond the least: what was not
	// read did not have to be.
	w.Required = min(max(required(p, io.Passed, io.Sweeps-1), min(p.PinnedBytes+p.StreamedBytes, io.Passed)), w.Read)
	return w
}

// required is the least that any policy reads for sweeps that passed so many bytes, where so many of
// them begin with what the budget holds beyond the least. A sweep without the head passes less.
func required(p *plan.Plan, passed, sweeps int64) int64 {
	active := p.PinnedBytes + p.StreamedBytes
	return max(passed-max(sweeps, 0)*(active-p.RequiredBytes()), 0)
}
