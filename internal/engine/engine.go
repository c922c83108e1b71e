// Package engine runs requests: it schedules rows of sequences into steps, runs each step as one
// sweep over the weights, samples, and streams tokens out.
package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/sample"
)

// Config is what an engine runs on.
type Config struct {
	Model    *nn.Model
	Env      *nn.Env
	Cache    *kv.Cache
	Rows     int // most rows of a step; the arena of Env is made for them
	HeadRows int // most rows of a step that reach the head
	// Sequences is how many requests run at once at most, the others wait; 0: any number. The plan's
	// cache is made for so many.
	Sequences int
	Context   int // most positions of a sequence
}

// Engine runs steps on a goroutine of its own while there are requests.
type Engine struct {
	cfg   Config
	mu    sync.Mutex // guards the scheduler and closed
	work  *sync.Cond
	sched scheduler
	calls []*call // to be run between steps
	// closed ends the goroutine once no sequence runs.
	closed   bool
	stopped  chan struct{}
	counters Counters
}

// Counters count what an engine did since it was made.
type Counters struct {
	Steps         int64
	PromptRows    int64
	AnswerRows    int64
	CacheOverflow int64 // requests that ended because a value did not fit the cache's type
	LostReads     int64 // requests that ended because an expert that they chose could not be read
}

// ErrClosed is returned by Submit after Close.
var ErrClosed = errors.New("the engine is closed")

// New starts an engine.
func New(cfg Config) *Engine {
	e := &Engine{cfg: cfg, stopped: make(chan struct{}), sched: scheduler{rows: cfg.Rows, headRows: cfg.HeadRows, most: cfg.Sequences}}
	e.work = sync.NewCond(&e.mu)
	go e.loop()
	return e
}

// Submit accepts a request or says why it cannot be run. The stream ends with a Done event.
func (e *Engine) Submit(ctx context.Context, r Request) (*Stream, error) {
	e.mu.Lock()
	cfg := e.cfg
	e.mu.Unlock()
	if err := cfg.check(&r); err != nil {
		return nil, err
	}
	sampler, err := sample.New(r.Sampling)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	q := &sequence{req: r, ctx: ctx, ids: append([]int32(nil), r.IDs...), done: r.Cached, cache: r.Cache, sampler: sampler, stream: newStream(cancel)}
	if q.cache == nil {
		q.cache, q.owned, q.done = e.cfg.Cache.NewSequence(), true, 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		cancel()
		return nil, ErrClosed
	}
	e.sched.running = append(e.sched.running, q)
	e.work.Signal()
	return q.stream, nil
}

// Close ends all requests after the step that runs, and waits for it.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	for _, q := range e.sched.running {
		q.stream.Cancel()
	}
	e.work.Signal()
	e.mu.Unlock()
	<-e.stopped
}

// Counters returns the counts so far.
func (e *Engine) Counters() Counters {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counters
}

// call is a function that runs between two steps.
type call struct {
	f    func() error
	done chan error
}

// Between runs f while no step runs, and returns what it returns. After Close it fails.
func (e *Engine) Between(f func() error) error {
	c := &call{f, make(chan error, 1)}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return ErrClosed
	}
	e.calls = append(e.calls, c)
	e.work.Signal()
	e.mu.Unlock()
	return <-c.done
}

// SetRows changes how many rows a step may have, and how many of them reach the head, as Config says. It is for Between.
func (e *Engine) SetRows(rows, headRows int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cfg.Rows, e.cfg.HeadRows = rows, headRows
	e.sched.rows, e.sched.headRows = rows, headRows
	for _, q := range slices.Clone(e.sched.running) {
		if q.req.Shape == nil || !q.prompt() {
			continue
		}
		if err := e.cfg.checkShape(&q.req); err != nil { // it cannot be divided
			e.endLocked(q, Event{Reason: Failed, Err: err})
		}
	}
}

func (e *Engine) loop() {
	defer close(e.stopped)
	for {
		e.mu.Lock()
		for len(e.sched.running) == 0 && !e.closed && len(e.calls) == 0 {
			e.work.Wait()
		}
		calls := e.calls
		e.calls = nil
		idle := len(e.sched.running) == 0
		closed := e.closed
		e.mu.Unlock()
		for _, c := range calls {
			c.done <- c.f()
		}
		switch {
		case !idle:
			e.step()
		case closed:
			return
		}
	}
}

// step schedules, runs one sweep, and gives out what came of it.
func (e *Engine) step() {
	parts := e.schedule()
	if len(parts) == 0 {
		return
	}
	ctx := context.Background()
	if len(parts) == 1 {
		ctx = parts[0].seq.ctx // nobody else needs what the step has done so far
	}
	batch := e.batch(parts)
	out, err := e.cfg.Model.Forward(ctx, e.cfg.Env, batch)
	if err != nil {
		for _, p := range parts {
			e.end(p.seq, ended(ctx, err))
		}
		return
	}
	e.emit(parts, batch, out)
}

// ended is the end of a request whose step failed, or was given up.
func ended(ctx context.Context, err error) Event {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return Event{Reason: Cancelled, Err: err}
	}
	return Event{Reason: Failed, Err: err}
}

func (e *Engine) schedule() []part {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, q := range append([]*sequence(nil), e.sched.running...) {
		if err := q.ctx.Err(); err != nil {
			e.endLocked(q, Event{Reason: Cancelled, Err: err})
		}
	}
	parts, failed, err := e.sched.next()
	if failed != nil {
		e.endLocked(failed, Event{Reason: Failed, Err: err})
	}
	return parts
}

// batch turns parts into segments.
func (e *Engine) batch(parts []part) *nn.Batch {
	b := &nn.Batch{}
	for _, p := range parts {
		q := p.seq
		s := &nn.Segment{}
		if q.req.Shape != nil && q.prompt() {
			*s = *q.req.Shape
		}
		s.Cache, s.First, s.Head = q.cache, q.done, p.head
		s.IDs = q.ids[q.done : q.done+p.rows]
		s.Adapter, s.RopeLength, s.Prompt = q.req.Adapter, q.req.RopeLength, q.prompt()
		if s.RopeLength == 0 {
			s.RopeLength = q.length()
		}
		b.Segments = append(b.Segments, s)
		b.Tap = q.req.Tap
	}
	return b
}

// emit hands out the values of the rows that reached the head, and samples.
func (e *Engine) emit(parts []part, b *nn.Batch, out []float32) {
	e.count(parts)
	width := e.cfg.Model.Layout.Vocab
	if e.cfg.Model.Pooling() != nn.PoolNone {
		width = e.cfg.Model.Layout.Hidden
	}
	for i, p := range parts {
		values := out[:len(p.head)*width]
		out = out[len(values):]
		if err := b.Segments[i].Err; err != nil { // what the rows left in the cache is of no use
			e.lost(err)
			e.end(p.seq, Event{Reason: Failed, Err: err})
			continue
		}
		first, wasPrompt := p.seq.done, p.seq.prompt()
		p.seq.done += p.rows
		kernel.Canonicalize(values)
		if p.seq.req.Rows != nil && wasPrompt {
			if err := eachRow(p, first, width, values); err != nil {
				e.end(p.seq, Event{Reason: Failed, Err: err})
				continue
			}
		}
		e.advance(p.seq, values, width)
	}
}

func eachRow(p part, first, width int, values []float32) error {
	for j, row := range p.head {
		if err := p.seq.req.Rows(first+row, values[j*width:][:width]); err != nil {
			return err
		}
	}
	return nil
}

// advance chooses the next token once all known ids are in the cache.
func (e *Engine) advance(q *sequence, values []float32, width int) {
	if q.done < len(q.ids) {
		return
	}
	if len(q.ids) >= q.length() {
		e.end(q, Event{Reason: Length})
		return
	}
	logits := values[len(values)-width:]
	if q.req.Logits != nil {
		q.req.Logits(q.done, logits)
	}
	id, err := q.sampler.Next(logits, q.done)
	switch {
	case err != nil:
		e.end(q, Event{Reason: Failed, Err: err})
	case q.req.End[int32(id)]:
		e.end(q, Event{Reason: Stop})
	default:
		q.ids = append(q.ids, int32(id))
		q.stream.push(Event{ID: int32(id)})
		if len(q.ids) >= q.length() {
			e.end(q, Event{Reason: Length})
		}
	}
}

func (e *Engine) count(parts []part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counters.Steps++
	for _, p := range parts {
		if p.seq.prompt() {
			e.counters.PromptRows += int64(p.rows)
		} else {
			e.counters.AnswerRows += int64(p.rows)
		}
	}
}

// lost counts why a sequence alone has failed.
func (e *Engine) lost(err error) {
	var overflow *nn.CacheRangeError
	e.mu.Lock()
	defer e.mu.Unlock()
	if errors.As(err, &overflow) {
		e.counters.CacheOverflow++
	} else {
		e.counters.LostReads++
	}
}

func (e *Engine) end(q *sequence, ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.endLocked(q, ev)
}

// endLocked takes a sequence out and gives back what it holds.
func (e *Engine) endLocked(q *sequence, ev Event) {
	e.sched.remove(q)
	q.stream.Cancel()
	ev.Done, ev.Cached = true, q.done
	if q.owned {
		ev.Cached = 0
		if err := q.cache.Release(); err != nil && ev.Err == nil {
			ev.Reason, ev.Err = Failed, err
		}
	}
	q.stream.push(ev)
}
