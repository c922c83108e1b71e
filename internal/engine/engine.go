// Package engine runs requests: it schedules rows of sequences into steps, runs each step as one
// sweep over the weights, samples, and streams tokens out.
package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/sample"
)

// Config is what an engine runs on.
type Config struct {
	Model    *nn.Model
	Env      *nn.Env
	Cache    *kv.Cache
	Ledger   *budget.Ledger // for the scratch of samplers that change logits
	Rows     int            // most rows of a step; the arena of Env is made for them
	HeadRows int            // most rows of a step that reach the head
	// Sequences is how many requests run at once at most, the others wait; 0: any number.
	Sequences int
	Queue     int // how many may wait; 0: any number
	Context   int // most positions of a sequence
	// Identity names the weights. With it prompts that begin alike share blocks of the cache; "": none do.
	Identity string
	// Streams says that a step reads weights from the drive, so that it pays to wait for company.
	Streams bool
}

// Engine runs steps on a goroutine of its own while there are requests.
type Engine struct {
	cfg      Config
	mu       sync.Mutex // guards what follows
	work     *sync.Cond
	sched    scheduler
	gather   gathering
	samplers scratches
	calls    []*call // to be run between steps
	counters Counters
	pace     pace
	closed   bool // ends the goroutine once no sequence is left
	stopped  chan struct{}
	kept     keeping // of the loop alone
}

// keeping is what steps leave for the next one, so that it need not allocate it: some hundred bytes for each seat,
// whatever the prompts were.
type keeping struct {
	batch    nn.Batch
	segments []nn.Segment
	choices  []choice
	thoughts thoughts
	sample   func(worker, choice int)
}

// ErrClosed is returned by Submit after Close.
var ErrClosed = errors.New("the engine is closed")

// New starts an engine.
func New(cfg Config) *Engine {
	e := &Engine{
		cfg: cfg, stopped: make(chan struct{}), gather: newGathering(cfg.Streams),
		sched: scheduler{rows: cfg.Rows, headRows: cfg.HeadRows, most: cfg.Sequences, cache: cfg.Cache, streams: cfg.Streams, now: time.Now},
	}
	e.kept.sample = e.sample
	e.samplers.init(cfg.Env.Pool.Threads())
	e.work = sync.NewCond(&e.mu)
	go e.loop()
	return e
}

// Submit accepts a request or says why it cannot be run: a *TooLongError, a *QueueFullError, what is wrong with
// it. An accepted request can finish whatever else there is. The stream ends with a Done event.
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
	if err := r.Sampling.CheckVocab(e.cfg.Model.Layout.Vocab); err != nil {
		return nil, err
	}
	if err := e.samplers.want(&e.cfg, &r); err != nil {
		return nil, err
	}
	ctx, cancel := r.limit(ctx)
	q := &sequence{req: r, ctx: ctx, ids: append([]int32(nil), r.IDs...), done: r.Cached, cache: r.Cache, sampler: sampler, stream: newStream(cancel), since: time.Now()}
	if q.cache == nil {
		q.cache, q.owned, q.done = e.cfg.Cache.NewSequence(), true, 0
		e.share(q)
	}
	if r.Beams != nil {
		q.beam = &beam{search: &search{Beams: *r.Beams, alive: []*sequence{q}}}
	}
	if r.Constraint != nil {
		q.mask = make([]uint64, (e.cfg.Model.Layout.Vocab+63)/64)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.admissible(); err != nil {
		cancel()
		return nil, err
	}
	e.sched.accept(q)
	e.gather.changed(time.Now())
	e.work.Signal()
	return q.stream, nil
}

// share lets a sequence take part in the sharing of blocks: everything that changes their bits is in the root.
func (e *Engine) share(q *sequence) {
	r := &q.req
	if e.cfg.Identity == "" || r.Private || r.Shape != nil || r.Adapter != nil && r.Adapter.ID == 0 {
		return
	}
	length, adapter := r.RopeLength, ""
	if length == 0 {
		length = q.length()
	}
	if r.Adapter != nil {
		adapter = strconv.Itoa(r.Adapter.ID)
	}
	q.cache.Share(kv.Root(e.cfg.Identity, e.cfg.Cache.Shape().Type.String(), adapter, strconv.Itoa(e.cfg.Model.RopeLength(length))))
}

// admissible says why one more request cannot be accepted. The lock is held.
func (e *Engine) admissible() error {
	if e.closed {
		return ErrClosed
	}
	running, waiting := len(e.sched.running), len(e.sched.waiting)
	if seats := e.cfg.Sequences - running; e.cfg.Queue > 0 && waiting-max(seats, 0) >= e.cfg.Queue {
		return &QueueFullError{running, waiting, e.pace.next(waiting, e.cfg.Sequences)}
	}
	return nil
}

// Close ends all requests after the step that runs, and waits for it.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.sched.each(func(q *sequence) { q.stream.Cancel() })
	e.work.Signal()
	e.mu.Unlock()
	e.gather.wake()
	<-e.stopped
	e.samplers.free()
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

// SetRows changes how many rows a step may have, how many of them reach the head, and whether it streams weights, as Config
// says. It is for Between.
func (e *Engine) SetRows(rows, headRows int, streams bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cfg.Rows, e.cfg.HeadRows = rows, headRows
	e.sched.rows, e.sched.headRows, e.sched.streams = rows, headRows, streams
	e.cfg.Streams, e.gather.on = streams, streams
	e.sched.each(func(q *sequence) {
		if q.req.Shape == nil || !q.prompt() {
			return
		}
		if err := e.cfg.checkShape(&q.req); err != nil { // it cannot be divided
			e.endLocked(q, Event{Reason: Failed, Err: err})
		}
	})
}

func (e *Engine) loop() {
	defer close(e.stopped)
	for e.wait() {
		e.between()
		e.step()
	}
	e.between() // who waits hears that it is over
}

// between runs the calls that wait.
func (e *Engine) between() {
	e.mu.Lock()
	calls, closed := e.calls, e.closed
	e.calls = nil
	e.mu.Unlock()
	for _, c := range calls {
		if closed {
			c.done <- ErrClosed
			continue
		}
		c.done <- c.f()
	}
}

// wait returns when there is something to do; false when the engine is closed. A sweep over weights that
// stream waits a moment for company.
func (e *Engine) wait() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.sched.running)+len(e.sched.waiting) == 0 && !e.closed && len(e.calls) == 0 {
		e.work.Wait()
	}
	if len(e.calls) > 0 && !e.closed {
		return true
	}
	if e.cfg.Sequences > 0 && len(e.sched.running)+len(e.sched.waiting) < e.cfg.Sequences && !e.closed {
		e.gather.wait(&e.mu)
	}
	return len(e.sched.running)+len(e.sched.waiting) > 0
}

// step schedules, runs one sweep, samples, and gives out what came of it.
func (e *Engine) step() {
	parts := e.schedule()
	if len(parts) == 0 {
		return
	}
	ctx := context.Background()
	if len(parts) == 1 {
		ctx = parts[0].seq.ctx // nobody else needs what the step has done so far
	}
	defer e.kept.forget(parts)
	batch := e.batch(parts)
	masks := e.kept.thoughts.think(parts) // constraints work while the weights do
	begin := time.Now()
	out, err := e.cfg.Model.Forward(ctx, e.cfg.Env, batch)
	masks.group.Wait()
	if err != nil {
		for _, p := range parts {
			e.end(p.seq, p.seq.failure(err))
		}
		return
	}
	e.count(parts, time.Since(begin), masks)
	e.choose(e.values(parts, batch, out))
}

// schedule ends the requests that need no step any more and fills the next one.
func (e *Engine) schedule() []part {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sched.each(func(q *sequence) {
		switch err := q.ctx.Err(); {
		case err != nil:
			e.endLocked(q, q.failure(err))
		case q.broken != nil:
			e.endLocked(q, Event{Reason: Failed, Err: q.broken})
		}
	})
	parts, failed, err := e.sched.next()
	if failed != nil {
		e.endLocked(failed, Event{Reason: Failed, Err: err})
	}
	return parts
}

// forget lets go of what the step's requests hold.
func (k *keeping) forget(parts []part) {
	clear(parts)
	clear(k.thoughts.those)
	clear(k.segments)
	clear(k.choices)
	k.batch.Tap, k.batch.Hidden = nil, nil
}

// batch turns parts into segments.
func (e *Engine) batch(parts []part) *nn.Batch {
	k, b := &e.kept, &e.kept.batch
	k.segments = slices.Grow(k.segments[:0], len(parts))[:len(parts)]
	b.Segments = b.Segments[:0]
	for i, p := range parts {
		q, s := p.seq, &k.segments[i]
		*s = nn.Segment{}
		if q.req.Shape != nil && q.prompt() {
			*s = *q.req.Shape
		}
		s.Cache, s.First, s.Head, s.Hidden = q.cache, q.done, p.head, q.req.Hidden
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
