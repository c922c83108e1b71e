package engine

import (
	"slices"
	"time"

	"github.com/spillway/spillway/internal/kv"
)

// Counters count what an engine did since it was made.
type Counters struct {
	Steps         int64
	StepTime      time.Duration // that they took, choosing apart
	AnswerSteps   int64         // of them, those without rows of prompts
	AnswerTime    time.Duration
	PromptRows    int64
	AnswerRows    int64
	Tokens        int64 // given out
	Forced        int64 // of them, those that constraints left no choice about
	Masks         int64 // of constraints, computed while steps ran
	MaskTime      time.Duration
	Preempted     int64 // times that a running request gave way to be computed again later
	SweepWaits    int64 // times that a step waited for company
	SweepWaited   time.Duration
	CacheOverflow int64 // requests that ended because a value did not fit the cache's type
	LostReads     int64 // requests that ended because an expert that they chose could not be read

	Stopped, Lengths, Cancels, Expiries, Failures int64 // requests by how they ended
}

func (c *Counters) ended(reason string) {
	switch reason {
	case Stop:
		c.Stopped++
	case Length:
		c.Lengths++
	case Cancelled:
		c.Cancels++
	case Expired:
		c.Expiries++
	default:
		c.Failures++
	}
}

// State is what an engine does at one moment.
type State struct {
	Counters
	Running, Waiting int
	Cache            kv.Stats
}

// Counters returns the counts so far.
func (e *Engine) Counters() Counters { return e.State().Counters }

// State returns the counts so far and who runs and waits.
func (e *Engine) State() State {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := State{Counters: e.counters, Running: len(e.sched.running), Waiting: len(e.sched.waiting), Cache: e.cfg.Cache.Stats()}
	s.Preempted = e.sched.preempted
	s.SweepWaits, s.SweepWaited = e.gather.waits, e.gather.waited
	return s
}

// count notes a step.
func (e *Engine) count(parts []part, took time.Duration, masks *thoughts) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counters.Steps++
	e.counters.StepTime += took
	if !slices.ContainsFunc(parts, func(p part) bool { return p.seq.prompt() }) {
		e.counters.AnswerSteps++
		e.counters.AnswerTime += took
	}
	e.counters.Masks += int64(masks.masks)
	e.counters.MaskTime += masks.took
	e.gather.sweep(took)
	for _, p := range parts {
		if p.seq.prompt() {
			e.counters.PromptRows += int64(p.rows)
		} else {
			e.counters.AnswerRows += int64(p.rows)
		}
	}
}

// pace is how long requests keep their seats, on average.
type pace struct{ mean time.Duration }

func (p *pace) add(d time.Duration) {
	if p.mean == 0 {
		p.mean = d
	}
	p.mean += (d - p.mean) / 8
}

// next is about how long it takes until one of so many requests that wait has a seat, a second at least.
func (p *pace) next(waiting, seats int) time.Duration {
	return min(max(p.mean*time.Duration(waiting+1)/time.Duration(max(seats, 1)), time.Second), time.Minute)
}
