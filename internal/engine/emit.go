package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/sample"
)

// choice is a token that is to be chosen, and then the token.
type choice struct {
	seq    *sequence
	logits []float32
	id     int
	prob   float32
	top    []sample.TokenLogProb
	over   bool // there is none, and the answer is complete
	err    error
}

// values hands out the values of the rows that reached the head, and returns the choices that follow from
// them.
func (e *Engine) values(parts []part, b *nn.Batch, logits []float32) []choice {
	choices := e.kept.choices[:0]
	states := b.Hidden
	width, hidden := e.cfg.Model.Layout.Vocab, e.cfg.Model.Layout.Hidden
	if e.cfg.Model.Pooling() != nn.PoolNone {
		width = hidden
	}
	for i, p := range parts {
		q, from, w := p.seq, &logits, width
		if q.req.Hidden {
			from, w = &states, hidden
		}
		values := (*from)[:len(p.head)*w]
		*from = (*from)[len(values):]
		if q.over() {
			continue
		}
		if err := b.Segments[i].Err; err != nil { // what the rows left in the cache is of no use
			e.lost(err)
			e.end(q, Event{Reason: Failed, Err: err})
			continue
		}
		kernel.Canonicalize(values)
		if err := q.advance(p, w, values); err != nil {
			e.end(q, Event{Reason: Failed, Err: err})
			continue
		}
		switch {
		case q.behind() > 0:
		case len(q.ids) >= q.length():
			e.end(q, Event{Reason: Length})
		default:
			choices = append(choices, choice{seq: q, logits: values[len(values)-w:]})
		}
	}
	e.kept.choices = choices
	return choices
}

// advance notes that the rows of a part are in the cache, and hands out the values that the request wants.
func (q *sequence) advance(p part, width int, values []float32) error {
	first := q.done
	q.done += p.rows
	if err := q.cache.Publish(q.ids, q.done); err != nil {
		return err
	}
	for j, row := range p.head {
		if q.req.Rows == nil || first+row < q.rowsGiven || first+row >= len(q.req.IDs) {
			continue // of the answer, or given before the sequence gave way
		}
		if err := q.req.Rows(first+row, values[j*width:][:width]); err != nil {
			return err
		}
		q.rowsGiven = first + row + 1
	}
	return nil
}

// choose samples all choices at once, each by its own sequence alone, and gives the tokens out.
func (e *Engine) choose(choices []choice) {
	for _, c := range choices {
		if c.seq.req.Logits != nil {
			c.seq.req.Logits(c.seq.done, c.logits)
		}
	}
	e.cfg.Env.Pool.Run(len(choices), e.kept.sample)
	given, forced := 0, 0
	for i := range choices {
		q := choices[i].seq
		before := len(q.ids)
		e.give(&choices[i])
		n := len(q.ids) - before
		given, forced = given+n, forced+max(n-1, 0)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counters.Tokens += int64(given)
	e.counters.Forced += int64(forced)
}

func (e *Engine) sample(worker, i int) { e.kept.choices[i].sample(e.samplers.of(worker)) }

// sample chooses the token.
func (c *choice) sample(s *sample.Scratch) {
	q := c.seq
	if q.beam != nil { // enough for all to go on, whichever of them end
		_, c.top = sample.LogProbs(c.logits, 0, 2*q.req.Beams.Width)
		return
	}
	in := sample.Input{Logits: c.logits, History: q.ids, Prompt: len(q.req.IDs), Scratch: s}
	if q.masked {
		in.Mask = q.mask
		if !slices.ContainsFunc(q.mask, func(w uint64) bool { return w != 0 }) {
			c.over, c.err = q.deadEnd()
			return
		}
	}
	if c.id, c.err = q.sampler.Choose(in); c.err == nil && q.req.LogProbs {
		c.prob, c.top = sample.LogProbs(c.logits, int32(c.id), q.req.TopLogProbs)
	}
}

// deadEnd is what it means that the constraint allows no token: the answer is complete, of a model that has no token to
// say so, or it cannot go on.
func (q *sequence) deadEnd() (over bool, err error) {
	if limited, ok := q.req.Constraint.(interface{ Err() error }); ok && limited.Err() != nil {
		return false, limited.Err()
	}
	if q.req.Constraint.MayEnd() {
		return true, nil
	}
	return false, errDeadEnd
}

var errDeadEnd = errors.New("the constraint cannot be met any more: no token of the vocabulary goes on with it")

// give adds the chosen token to the answer, and those that the constraint leaves no choice about.
func (e *Engine) give(c *choice) {
	q, id := c.seq, int32(c.id)
	if q.beam != nil {
		if !q.over() {
			e.know(q, c.top)
		}
		return
	}
	if c.err != nil {
		e.end(q, Event{Reason: Failed, Err: c.err})
		return
	}
	if c.over || q.req.End[id] {
		e.end(q, Event{Reason: Stop, ID: id})
		return
	}
	q.add(Event{ID: id, LogProb: c.prob, Top: c.top})
	if err := q.force(id); err != nil {
		e.end(q, Event{Reason: Failed, Err: err})
		return
	}
	if len(q.ids) >= q.length() {
		e.end(q, Event{Reason: Length})
	}
}

func (q *sequence) add(ev Event) {
	q.ids = append(q.ids, ev.ID)
	q.stream.push(ev)
}

// force takes the constraint on by a token, and the answer by those that must follow: their rows join the next
// step, and no step need choose them. It changes no token.
func (q *sequence) force(id int32) error {
	c := q.req.Constraint
	if c == nil {
		return nil
	}
	if err := c.Accept(id); err != nil {
		return err
	}
	if q.req.LogProbs || q.req.Logits != nil || q.req.Sampling.MirostatTau != 0 {
		return nil // each token has its logits looked at
	}
	for len(q.ids) < q.length() {
		next, ok := c.Forced()
		if !ok || q.req.End[next] {
			return nil
		}
		if err := c.Accept(next); err != nil {
			return err
		}
		q.add(Event{ID: next})
	}
	return nil
}

// thoughts are masks that are computed while the weights are at work.
type thoughts struct {
	group sync.WaitGroup
	those []*sequence
	masks int
	took  time.Duration
}

// think computes the masks of the tokens that the step will choose.
func (t *thoughts) think(parts []part) *thoughts {
	t.those, t.masks, t.took = t.those[:0], 0, 0
	for _, p := range parts {
		if q := p.seq; q.mask != nil && q.done+p.rows == len(q.ids) {
			t.those = append(t.those, q)
		}
	}
	if len(t.those) > 0 {
		t.masks = len(t.those)
		t.group.Go(func() {
			begin := time.Now()
			for _, q := range t.those {
				q.masked = q.req.Constraint.Mask(q.mask)
			}
			t.took = time.Since(begin)
		})
	}
	return t
}

// failure is the end of a request whose step failed, or that was given up.
func (q *sequence) failure(err error) Event {
	ended := q.ctx.Err()
	switch {
	case q.stream.stopped.Load():
		return Event{Reason: Stop}
	case ended == nil || !errors.Is(err, ended):
		return Event{Reason: Failed, Err: err}
	case errors.Is(ended, context.DeadlineExceeded):
		at, _ := q.ctx.Deadline()
		return Event{Reason: Expired, Err: &DeadlineError{at, len(q.ids) - len(q.req.IDs), q.seated.IsZero()}}
	}
	return Event{Reason: Cancelled, Err: err}
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
	if q.over() {
		return
	}
	e.sched.remove(q)
	q.stream.Cancel()
	ev.Done, ev.Cached, ev.Reused = true, q.done, q.reused
	if q.owned {
		ev.Cached = 0
		err := q.cache.Release()
		if q.beam != nil {
			err = errors.Join(err, e.endSearch(q.beam.search))
		}
		if err != nil && ev.Err == nil {
			ev.Reason, ev.Err = Failed, err
		}
	}
	e.counters.ended(ev.Reason)
	if !q.seated.IsZero() {
		e.pace.add(time.Since(q.seated))
	}
	e.gather.changed(time.Now())
	q.stream.push(ev)
}
