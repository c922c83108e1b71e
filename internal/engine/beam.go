package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spillway/spillway/internal/sample"
)

// Beams asks for the likeliest answers instead of one that is sampled: of all continuations of the Width likeliest
// beginnings the Width likeliest are followed, token by token. Probabilities are those of the logits as they are.
type Beams struct {
	Width int
	// LengthPenalty ranks answers by the sum of their tokens' log probabilities ÷ length^LengthPenalty: 0 favours short
	// ones, 1 is the mean.
	LengthPenalty float64
}

// MaxWidth is the most beginnings that a search follows.
const MaxWidth = 64

// Hypothesis is an answer that a search found.
type Hypothesis struct {
	IDs     []int32
	LogProb float64 // the sum of its tokens', and of the end's
	Score   float64
	Reason  string // Stop or Length
}

// search is a request whose answers branch. Its sequences share blocks until they differ.
type search struct {
	Beams
	alive []*sequence
	found []Hypothesis // best first, Width at most
	over  bool
}

// beam is what a sequence of a search is beside its tokens.
type beam struct {
	*search
	sum float64 // of the log probabilities
	// next are its likeliest continuations once they are known. Until the others' are, the sequence does not run, and it
	// does not need its blocks.
	next []sample.TokenLogProb
}

// parked reports whether a sequence waits for the others of its search.
func (s *sequence) parked() bool { return s.beam != nil && s.beam.next != nil }

// checkBeams says why a request cannot branch.
func (c *Config) checkBeams(r *Request) error {
	b := r.Beams
	switch {
	case b == nil:
	case b.Width < 1 || b.Width > MaxWidth || c.Sequences > 0 && b.Width > c.Sequences:
		most := MaxWidth
		if c.Sequences > 0 {
			most = min(most, c.Sequences)
		}
		return fmt.Errorf("a beam of width %d is not possible: 1 to %d are", b.Width, most)
	case math.IsNaN(b.LengthPenalty) || math.Abs(b.LengthPenalty) > 10:
		return fmt.Errorf("a length penalty of %v is not possible: -10 to 10 are", b.LengthPenalty)
	case r.MaxTokens < 1 || r.Cache != nil || r.Constraint != nil || r.Rows != nil || r.Logits != nil || r.Tap != nil || r.Shape != nil:
		return errors.New("a beam search takes a plain prompt, without a constraint, and gives answers")
	}
	return nil
}

// branch is a way to go on.
type branch struct {
	from *sequence
	id   int32
	sum  float64
}

// know takes a sequence's continuations, and goes on with the search once all are known.
func (e *Engine) know(q *sequence, next []sample.TokenLogProb) {
	if len(next) == 0 {
		e.end(q, Event{Reason: Failed, Err: errNoBranch})
		return
	}
	q.beam.next = next
	s := q.beam.search
	if slices.ContainsFunc(s.alive, func(r *sequence) bool { return !r.parked() }) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.follow(s, s.branches(len(q.ids)+1-len(q.req.IDs), len(q.ids)+1 >= q.length()))
	switch {
	case len(s.alive) == 0 && len(s.found) == 0:
		e.endLocked(q, Event{Reason: Failed, Err: errNoBranch})
	case len(s.alive) == 0 || s.done(q.req.MaxTokens):
		e.endLocked(q, Event{Reason: s.found[0].Reason, Beams: s.found})
	}
}

var errNoBranch = errors.New("no token can follow: there are no logits above -Inf")

// branches chooses which continuations the search follows, and notes those that are complete. The answer has n
// tokens with them.
func (s *search) branches(n int, last bool) []branch {
	var all []branch
	for _, q := range s.alive {
		for _, t := range q.beam.next {
			if sum := q.beam.sum + float64(t.LogProb); sum > math.Inf(-1) {
				all = append(all, branch{q, t.ID, sum})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b branch) int { return cmp.Compare(b.sum, a.sum) })
	var follow []branch
	for rank, b := range all {
		if len(follow) == s.Width {
			break
		}
		answer := b.from.ids[len(b.from.req.IDs):]
		switch {
		case b.from.req.End[b.id]:
			if rank < s.Width {
				s.add(Hypothesis{IDs: slices.Clone(answer), LogProb: b.sum, Reason: Stop}, n)
			}
		case last:
			s.add(Hypothesis{IDs: append(slices.Clone(answer), b.id), LogProb: b.sum, Reason: Length}, n)
			follow = append(follow, b)
		default:
			follow = append(follow, b)
		}
	}
	if last {
		return nil
	}
	return follow
}

// add keeps a complete answer of n tokens if it is among the best.
func (s *search) add(h Hypothesis, n int) {
	h.Score = s.score(h.LogProb, n)
	i, _ := slices.BinarySearchFunc(s.found, h.Score, func(o Hypothesis, score float64) int {
		if o.Score >= score {
			return -1 // equal ones in the order in which they were found
		}
		return 1
	})
	s.found = slices.Insert(s.found, i, h)
	s.found = s.found[:min(len(s.found), s.Width)]
}

func (s *search) score(sum float64, n int) float64 {
	return sum / math.Pow(float64(n), s.LengthPenalty)
}

// done reports whether nothing that is still followed can be better than what was found.
func (s *search) done(most int) bool {
	if len(s.found) < s.Width {
		return false
	}
	best := s.alive[0]
	n := len(best.ids) - len(best.req.IDs)
	return max(s.score(best.beam.sum, n), s.score(best.beam.sum, most)) <= s.found[s.Width-1].Score
}

// follow makes the sequences of a search those of its branches: the first of each takes its parent's place, others
// share the parent's blocks. The lock is held.
func (e *Engine) follow(s *search, branches []branch) {
	parents := s.alive
	s.alive = nil
	used := map[*sequence]bool{}
	for _, b := range branches {
		q := b.from
		if used[q] {
			q = e.fork(b.from)
		}
		used[b.from] = true
		s.alive = append(s.alive, q)
	}
	for i, b := range branches {
		q := s.alive[i]
		q.ids = append(slices.Clip(q.ids), b.id)
		q.beam = &beam{search: s, sum: b.sum}
		if !slices.Contains(e.sched.running, q) {
			e.sched.wait(q)
		}
	}
	for _, q := range parents {
		if !used[q] {
			e.sched.remove(q)
			q.broken = q.cache.Release()
		}
	}
}

// fork is a sequence that has come as far as q. The lock is held.
func (e *Engine) fork(q *sequence) *sequence {
	f := *q
	f.cache, f.ids = q.cache.Fork(), slices.Clone(q.ids)
	if slices.Contains(e.sched.running, q) {
		e.sched.running = insert(e.sched.running, &f)
	}
	return &f
}

// over reports whether a sequence has ended with its search.
func (s *sequence) over() bool { return s.beam != nil && s.beam.search.over }

// endSearch takes all sequences of a search out and gives back what they hold.
func (e *Engine) endSearch(s *search) (err error) {
	s.over = true
	for _, q := range s.alive {
		e.sched.remove(q)
		err = errors.Join(err, q.cache.Release())
	}
	return err
}
