// Package admin is for operators: metrics in Prometheus' text format, the state of the memory, and changing the
// memory limit while the server runs.
package admin

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/tracing"
)

// Metrics count what the server is told of answers. They are the server's Observer.
type Metrics struct {
	// Drive says what a drive gives at best, in bytes per second, 0 if nobody has measured it; nil: nobody has.
	Drive  func(device uint64) float64
	meters meters

	mu     sync.Mutex
	models map[string]*modelMetrics
	traces *tracing.Exporter // nil: none
}

// NewMetrics returns metrics without a count; traces may be nil.
func NewMetrics(traces *tracing.Exporter) *Metrics {
	return &Metrics{models: map[string]*modelMetrics{}, traces: traces}
}

// modelMetrics are those of one model, under the names of vLLM.
type modelMetrics struct {
	first, between, total *histogram // seconds
	prompt, answer        *histogram // tokens
	prompts, cached       int64      // tokens
	answers               int64
	finished              map[string]int64 // by reason
}

var (
	firstBounds  = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160}
	gapBounds    = []float64{0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 10}
	totalBounds  = []float64{0.1, 0.3, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 240, 480, 960}
	tokensBounds = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}
)

// of returns a model's metrics; the lock is held.
func (m *Metrics) of(model string) *modelMetrics {
	x := m.models[model]
	if x == nil {
		x = &modelMetrics{
			first: newHistogram(firstBounds), between: newHistogram(gapBounds), total: newHistogram(totalBounds),
			prompt: newHistogram(tokensBounds), answer: newHistogram(tokensBounds), finished: map[string]int64{},
		}
		m.models[model] = x
	}
	return x
}

// Token is part of server.Observer.
func (m *Metrics) Token(model string, first bool, gap time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.of(model)
	x.answers++
	if first {
		x.first.add(gap.Seconds())
	} else {
		x.between.add(gap.Seconds())
	}
}

// Done is part of server.Observer.
func (m *Metrics) Done(g server.Generation) {
	m.trace(g)
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.of(g.Model)
	x.prompts += int64(g.Prompt)
	x.cached += int64(g.Cached)
	reason := g.Reason
	if g.Err != nil && (reason == "" || reason == "stop" || reason == "length") {
		reason = "error"
	}
	x.finished[reason]++
	if g.Err == nil {
		x.total.add(g.Total.Seconds())
		x.prompt.add(float64(g.Prompt))
		x.answer.add(float64(g.Answer))
	}
}

// trace sends the spans of an answer: all of it, until its first token, and from there.
func (m *Metrics) trace(g server.Generation) {
	if m.traces == nil {
		return
	}
	s := m.traces.Start("generate", g.Trace)
	end := s.Begin
	s.Begin = end.Add(-g.Total)
	s.Set("gen_ai.request.model", g.Model)
	s.Set("gen_ai.usage.input_tokens", g.Prompt)
	s.Set("gen_ai.usage.output_tokens", g.Answer)
	s.Set("gen_ai.response.finish_reasons", g.Reason)
	s.Set("spillway.cached_tokens", g.Cached)
	s.Set("spillway.request_id", g.Request)
	if g.First > 0 {
		m.traces.Part(s, "first token", s.Begin, s.Begin.Add(g.First))
		m.traces.Part(s, "answer", s.Begin.Add(g.First), end)
	}
	m.traces.End(s, g.Err)
}

// write puts out the counts of answers.
func (m *Metrics) write(t *text) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.models)) {
		x, l := m.models[name], label{"model_name", name}
		t.counter("vllm:prompt_tokens_total", "Tokens of prompts.", float64(x.prompts), l)
		t.counter("vllm:generation_tokens_total", "Tokens of answers.", float64(x.answers), l)
		t.counter("spillway_cached_prompt_tokens_total", "Tokens of prompts that the prefix cache held.", float64(x.cached), l)
		for _, reason := range slices.Sorted(maps.Keys(x.finished)) {
			t.counter("vllm:request_success_total", "Requests that ended, by reason.", float64(x.finished[reason]), l, label{"finished_reason", reason})
		}
		t.histogram("vllm:time_to_first_token_seconds", "From a request's arrival to its first token.", x.first, l)
		t.histogram("vllm:inter_token_latency_seconds", "Between two tokens of an answer.", x.between, l)
		t.histogram("vllm:e2e_request_latency_seconds", "From a request's arrival to its end.", x.total, l)
		t.histogram("vllm:request_prompt_tokens", "Tokens of a request's prompt.", x.prompt, l)
		t.histogram("vllm:request_generation_tokens", "Tokens of a request's answer.", x.answer, l)
	}
	if m.traces != nil {
		sent, dropped := m.traces.Counts()
		t.counter("spillway_trace_spans_total", "Spans for the collector of traces.", float64(sent), label{"state", "sent"})
		t.counter("spillway_trace_spans_total", "Spans for the collector of traces.", float64(dropped), label{"state", "dropped"})
	}
}

// histogram counts values below bounds.
type histogram struct {
	bounds []float64
	counts []int64 // not cumulated; one more for what is above all
	sum    float64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]int64, len(bounds)+1)}
}

func (h *histogram) add(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i]++
	h.sum += v
}

// escape writes a label's value as the format wants it.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(s)
}
