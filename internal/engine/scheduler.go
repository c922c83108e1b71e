package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/sample"
)

// sequence is a request that was accepted: ids so far, and how many of them the cache holds.
type sequence struct {
	req     Request
	ctx     context.Context
	ids     []int32 // prompt and answer
	done    int     // positions in the cache
	cache   *kv.Sequence
	owned   bool // the cache goes with the sequence
	sampler *sample.Sampler
	stream  *Stream

	mask   []uint64 // what the constraint allows next,
	masked bool     // if it forbids anything
	beam   *beam    // nil: the answer does not branch

	last      [1]int // row of the next ones, see headRows
	arrival   int64  // rank in the order of arrival
	overtaken int    // times that a later request was given a seat before this one
	rowsGiven int    // positions of the prompt that Request.Rows has had
	reused    int    // positions of the prompt that the cache had
	again     bool   // it gave way before and is computed again
	broken    error  // what it held could not be given back
	since     time.Time
	seated    time.Time // when it got a seat first
}

// prompt reports whether rows of the prompt are still to be run.
func (s *sequence) prompt() bool { return s.done < len(s.req.IDs) }

// behind is how many known ids are not in the cache.
func (s *sequence) behind() int { return len(s.ids) - s.done }

// answering reports whether the next rows go on with an answer, a token or those that were forced. What is
// computed again after a preemption comes in chunks like a prompt.
func (s *sequence) answering() bool { return !s.prompt() && s.behind() <= mostForced }

// mostForced is how many rows of one step still count as those of an answer.
const mostForced = 16

// alone reports whether the sequence's next rows must not share a step.
func (s *sequence) alone() bool { return s.req.Tap != nil || s.req.Shape != nil && s.prompt() }

// length is the most positions that the sequence can need.
func (s *sequence) length() int { return len(s.req.IDs) + s.req.MaxTokens }

// lacks is how many blocks the sequence does not hold for the ids that are known and the next one.
func (s *sequence) lacks() int {
	return max(kv.Blocks(min(len(s.ids)+1, s.length()))-s.cache.Blocks(), 0)
}

// before is the order in which sequences are served: by priority, then by arrival.
func before(a, b *sequence) int {
	return cmp.Or(cmp.Compare(a.req.Priority, b.req.Priority), cmp.Compare(a.arrival, b.arrival))
}

// part is what one sequence does in a step.
type part struct {
	seq  *sequence
	rows int
	head []int // rows whose logits are wanted
}

// scheduler decides which sequences run a step and how many rows each. It touches no tensors.
type scheduler struct {
	rows     int       // most rows of a step
	headRows int       // most rows of a step that reach the head
	most     int       // seats: sequences that run at once at most; 0: any number
	cache    *kv.Cache // whose blocks there are
	streams  bool      // a step is a sweep over weights that stream
	now      func() time.Time
	// running are the sequences that have a seat, waiting those that have none; both in order.
	running, waiting []*sequence

	arrivals  int64
	preempted int64

	// Kept from step to step, so that none need be made:
	filling filling
	every   []*sequence
	turn    []*sequence
}

const (
	// overtakings is how often a request may be overtaken by one that finds more of its prompt in the cache.
	overtakings = 8
	// lookahead is how many waiting requests are looked at for that.
	lookahead = 64
)

// accept takes a request in; it waits until next gives it a seat.
func (s *scheduler) accept(q *sequence) {
	s.arrivals++
	q.arrival = s.arrivals
	s.wait(q)
}

func (s *scheduler) wait(q *sequence) { s.waiting = insert(s.waiting, q) }

// insert keeps a list in order.
func insert(list []*sequence, q *sequence) []*sequence {
	i, _ := slices.BinarySearchFunc(list, q, before)
	return slices.Insert(list, i, q)
}

// each calls f for all sequences that were accepted and have not ended; f may remove them.
func (s *scheduler) each(f func(*sequence)) {
	s.every = append(append(s.every[:0], s.running...), s.waiting...)
	for _, q := range s.every {
		f(q)
	}
	clear(s.every) // who has ended is not kept
}

// remove forgets a sequence that has ended.
func (s *scheduler) remove(q *sequence) {
	s.running, s.waiting = remove(s.running, q), remove(s.waiting, q)
}

func remove(list []*sequence, q *sequence) []*sequence {
	return slices.DeleteFunc(list, func(r *sequence) bool { return r == q })
}

// next fills a step: first the rows of every answer that runs, then chunks of prompts, each in order. When
// blocks run out those that come last in the order give way. If nobody can run, the last is failed so that
// the others go on. The parts are valid until the next call.
func (s *scheduler) next() (parts []part, failed *sequence, err error) {
	s.seat()
	if len(s.running) == 0 {
		return nil, nil, nil
	}
	f := &s.filling
	*f = filling{scheduler: s, rows: s.rows, heads: s.headRows, parts: f.parts[:0], keys: f.keys[:0]}
	if first := s.running[0]; first.alone() {
		f.add(first)
	} else {
		f.all(true)
		f.all(false)
	}
	if len(f.parts) > 0 {
		return f.parts, nil, nil
	}
	for _, q := range slices.Backward(s.running) {
		if q.parked() { // another of its search has no room, or no seat
			s.preempt(q)
			return s.next()
		}
	}
	return nil, s.running[len(s.running)-1], f.err
}

// seat gives seats to waiting requests, as long as there are seats, and blocks for what is known of them. Running
// requests of a later priority give way.
func (s *scheduler) seat() {
	for len(s.waiting) > 0 && (s.free() || s.later(s.waiting[0]) != nil) {
		i := s.choose()
		q := s.waiting[i]
		for !s.fits(q) {
			later := s.later(q)
			if later == nil {
				return
			}
			s.preempt(later)
		}
		for _, passed := range s.waiting[:i] {
			passed.overtaken++
		}
		s.waiting = remove(s.waiting, q)
		s.running = insert(s.running, q)
		if q.seated.IsZero() {
			q.seated = s.now()
		}
	}
}

// free reports whether there is a seat.
func (s *scheduler) free() bool { return s.most == 0 || len(s.running) < s.most }

// later is the last running sequence if it gives way to a waiting one for its priority; else nil.
func (s *scheduler) later(q *sequence) *sequence {
	if last := s.last(nil); last != nil && q.req.Priority < last.req.Priority {
		return last
	}
	return nil
}

// choose returns which of the waiting requests is next: of those of the first one's priority the one of whose
// prompt most is in the cache, unless that has passed over another too often.
func (s *scheduler) choose() int {
	best, most := 0, -1
	for i, q := range s.waiting[:min(len(s.waiting), lookahead)] {
		if q.req.Priority != s.waiting[0].req.Priority {
			break
		}
		if n, _ := q.cache.Match(q.ids); n > most {
			best, most = i, n
		}
		if q.overtaken >= overtakings {
			break
		}
	}
	return best
}

// fits reports whether a waiting request may have a seat now: there is one, and blocks for its ids beside those
// that the running ones are about to take. Alone, it always fits.
func (s *scheduler) fits(q *sequence) bool {
	if len(s.running) == 0 || !s.free() {
		return s.free()
	}
	room := s.cache.Room()
	for _, r := range s.running {
		room -= r.lacks()
	}
	found, idle := q.cache.Match(q.ids)
	return q.lacks()-found+idle <= room
}

// last is the running sequence that comes last in the order, of those after q (nil: of all), and can give way.
// A cache that outlives its request cannot be computed again from the request alone, and who taps values has them once.
func (s *scheduler) last(q *sequence) *sequence {
	for _, r := range slices.Backward(s.running) {
		if r == q {
			return nil
		}
		if r.owned && r.req.Tap == nil && (q == nil || r.cache.Blocks() > 0) {
			return r
		}
	}
	return nil
}

// preempt takes a sequence's seat and blocks; it is computed again when it has its next turn.
func (s *scheduler) preempt(q *sequence) {
	s.preempted++
	s.remove(q)
	if !q.parked() {
		s.wait(q)
	}
	q.done, q.again = 0, true
	q.broken = q.cache.Release()
}

// filling is a step that is being put together.
type filling struct {
	*scheduler
	rows, heads int // that are left
	parts       []part
	keys        []kv.Key // of the blocks that the step will fill
	err         error    // why a sequence has found no room
}

// all adds the sequences that answer, or those that do not.
func (f *filling) all(answering bool) {
	f.turn = append(f.turn[:0], f.running...) // those who give way leave the other list
	for _, q := range f.turn {
		if q.answering() == answering && !q.alone() && !q.parked() && f.rows > 0 && f.heads > 0 && slices.Contains(f.running, q) {
			f.add(q)
		}
	}
	clear(f.turn)
}

// add gives q its next rows. Who finds no block takes those of sequences that come later, or waits.
func (f *filling) add(q *sequence) {
	if !q.answering() && f.comes(q) {
		return
	}
	n := min(q.behind(), f.rows)
	if q.req.Shape != nil && q.prompt() {
		n = len(q.req.IDs) - q.done
	}
	if q.everyRow() {
		n = min(n, f.heads)
	}
	for {
		err := q.cache.Grow(q.done + n)
		if err == nil {
			break
		}
		last := f.last(q)
		if last == nil {
			f.err = err
			return
		}
		f.giveUp(last)
	}
	p := part{seq: q, rows: n, head: q.headRows(n)}
	f.parts = append(f.parts, p)
	f.rows, f.heads = f.rows-n, f.heads-p.logits()
	f.keys = q.cache.Keys(f.keys, q.ids, q.done+n)
}

// comes takes for q what the cache has of its next positions, and reports whether q waits a step because another
// sequence of this one computes what comes next. Where a step is a sweep over weights that stream, that pays
// only if it is half of what q has to compute.
func (f *filling) comes(q *sequence) bool {
	if q.req.Rows != nil && !q.req.LastRow || q.req.Tap != nil || q.req.Shape != nil {
		return false
	}
	if n := q.cache.Reuse(q.ids); q.owned {
		if !q.again {
			q.reused += n - q.done
		}
		q.done = n
	}
	if len(f.parts) == 0 {
		return false
	}
	n := 0
	for _, k := range q.cache.Keys(nil, q.ids, len(q.ids)-1) {
		if !slices.Contains(f.keys, k) {
			break
		}
		n += kv.BlockTokens
	}
	return n > 0 && (!f.streams || 2*n >= q.behind())
}

// giveUp preempts a sequence and takes its part out of the step.
func (f *filling) giveUp(q *sequence) {
	f.preempt(q)
	for i, p := range f.parts {
		if p.seq == q {
			f.rows, f.heads = f.rows+p.rows, f.heads+p.logits()
			f.parts = slices.Delete(f.parts, i, i+1)
			return
		}
	}
}

// logits is how many rows of a part pass the head.
func (p *part) logits() int {
	if p.seq.req.Hidden {
		return 0
	}
	return len(p.head)
}

// everyRow reports whether the logits of all of the next rows are wanted, and not given out yet.
func (s *sequence) everyRow() bool {
	return s.req.Rows != nil && s.prompt() && !s.req.Hidden && s.rowsGiven < len(s.req.IDs)
}

// headRows lists the rows, of the next n, whose logits or states are wanted: all of a prompt if the request
// asks for them, and the last one if an answer token follows. The list is valid until the next call.
func (s *sequence) headRows(n int) []int {
	last := s.done+n == len(s.ids)
	if s.req.Rows != nil && s.prompt() && !s.req.LastRow {
		var all []int
		for i := range n {
			if at := s.done + i; at >= s.rowsGiven && at < len(s.req.IDs) || at+1 == len(s.ids) {
				all = append(all, i)
			}
		}
		return all
	}
	if last && (s.req.MaxTokens > 0 || s.req.LastRow) {
		s.last[0] = n - 1
		return s.last[:]
	}
	return nil
}
