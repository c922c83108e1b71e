package engine

import (
	"context"
	"fmt"

	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/sample"
)

// sequence is a request that runs: ids so far, and how many of them the cache holds.
type sequence struct {
	req     Request
	ctx     context.Context
	ids     []int32 // prompt and answer
	done    int     // positions in the cache
	cache   *kv.Sequence
	owned   bool // the cache goes with the sequence
	sampler *sample.Sampler
	stream  *Stream
}

// prompt reports whether rows of the prompt are still to be run.
func (s *sequence) prompt() bool { return s.done < len(s.req.IDs) }

// alone reports whether the sequence's next rows must not share a step.
func (s *sequence) alone() bool { return s.req.Tap != nil || s.req.Shape != nil && s.prompt() }

// length is the most positions that the sequence can need.
func (s *sequence) length() int { return len(s.req.IDs) + s.req.MaxTokens }

// part is what one sequence does in a step.
type part struct {
	seq  *sequence
	rows int
	head []int // rows whose logits are wanted
}

// scheduler decides which sequences run a step and how many rows each. It touches no tensors.
type scheduler struct {
	rows     int // most rows of a step
	headRows int // most rows of a step that reach the head
	most     int // sequences that run at once at most; 0: any number
	// running is the accepted requests in order of arrival; those beyond the first most wait.
	running []*sequence
}

// admitted are the sequences that may run now.
func (s *scheduler) admitted() []*sequence {
	if s.most > 0 && len(s.running) > s.most {
		return s.running[:s.most]
	}
	return s.running
}

// next fills a step: first one row of every answer that runs, then chunks of prompts in order of
// arrival. Sequences that have no room in the cache wait; if nobody can run, the youngest is failed
// so that the others go on.
func (s *scheduler) next() (parts []part, failed *sequence, err error) {
	if len(s.running) == 0 {
		return nil, nil, nil
	}
	if alone := s.alone(); alone != nil {
		parts, err = s.add(nil, alone, s.rows, s.headRows)
	} else {
		parts, err = s.fill()
	}
	if len(parts) == 0 {
		admitted := s.admitted()
		return nil, admitted[len(admitted)-1], err
	}
	return parts, nil, nil
}

// alone returns the first sequence if it must not share a step.
func (s *scheduler) alone() *sequence {
	if first := s.running[0]; first.alone() {
		return first
	}
	return nil
}

func (s *scheduler) fill() (parts []part, err error) {
	rows, heads := s.rows, s.headRows
	for _, prompts := range []bool{false, true} {
		for _, q := range s.admitted() {
			if q.prompt() != prompts || q.alone() || rows == 0 || heads == 0 {
				continue
			}
			before := len(parts)
			var e error
			if parts, e = s.add(parts, q, rows, heads); e != nil {
				err = e
			}
			if len(parts) > before {
				p := parts[before]
				rows, heads = rows-p.rows, heads-len(p.head)
			}
		}
	}
	return parts, err
}

// add gives q its next rows.
func (s *scheduler) add(parts []part, q *sequence, rows, heads int) ([]part, error) {
	n := min(len(q.ids)-q.done, rows)
	if q.req.Shape != nil && q.prompt() {
		n = len(q.req.IDs) - q.done
	}
	if q.req.Rows != nil && q.prompt() {
		n = min(n, heads)
	}
	if err := q.cache.Grow(q.done + n); err != nil {
		return parts, err
	}
	return append(parts, part{seq: q, rows: n, head: q.headRows(n)}), nil
}

// headRows lists the rows, of the next n, whose logits are wanted: all of a prompt if the request
// asks for them, and the last one if an answer token follows.
func (s *sequence) headRows(n int) []int {
	if s.req.Rows != nil && s.prompt() {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	if s.done+n == len(s.ids) && s.req.MaxTokens > 0 {
		return []int{n - 1}
	}
	return nil
}

func (s *scheduler) remove(q *sequence) {
	for i, r := range s.running {
		if r == q {
			s.running = append(s.running[:i:i], s.running[i+1:]...)
			return
		}
	}
}

// TooLongError says that a request needs more positions than the engine's context.
type TooLongError struct{ Prompt, MaxTokens, Context int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the prompt of %d tokens and %d more do not fit in a context of %d: raise --context or lower --max-tokens", e.Prompt, e.MaxTokens, e.Context)
}
