package spillway

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spillway/spillway/internal/budget"
)

// ErrClosed is what a closed runtime or model answers.
var ErrClosed = errors.New("closed")

// begin counts a model, leases the runtime pool and sets the limits that the plan was made for. The
// lock is held. Whatever comes of it, end undoes it.
func (rt *Runtime) begin(m *Model) error {
	rt.models++
	m.Checkpoint.models++
	want := m.CurrentPlan().Pools[budget.Runtime]
	held := rt.ledger.Snapshot().Pools[budget.Runtime].Used
	var err error
	if rt.own == nil {
		rt.own, err = rt.ledger.Reserve(budget.Runtime, max(want-held, 0), "the process itself")
	} else {
		before := rt.own.Bytes()
		if err = rt.own.Resize(max(want-(held-before), before)); err == nil {
			m.added = rt.own.Bytes() - before
		}
	}
	if err == nil {
		err = rt.ledger.SetLimit(rt.limit)
	}
	rt.tables += m.heap(m.options)
	rt.limitHeap()
	return err
}

// end forgets a model that has given everything back, and what the process needed for it alone. With
// the last one goes the rest, to be measured anew for the next. The lock is held.
func (rt *Runtime) end(m *Model) error {
	rt.models--
	m.Checkpoint.models--
	rt.open = slices.DeleteFunc(rt.open, func(x *Model) bool { return x == m })
	rt.tables -= m.heap(m.options)
	if rt.own == nil {
		return nil
	}
	if rt.models > 0 {
		return rt.own.Resize(rt.own.Bytes() - m.added)
	}
	own := rt.own
	rt.own, rt.heap = nil, 0
	return own.Release()
}

// left is what another model may plan with, the runtime pool included: the limit less what the open
// models hold.
func (rt *Runtime) left() int64 {
	u := rt.ledger.Snapshot()
	return max(rt.limit-(u.Used-u.Pools[budget.Runtime].Used), 0)
}

// beside adds to an error that other models have their part of the memory.
func (rt *Runtime) beside(err error) error {
	var small *TooSmallError
	if rt.models == 0 || !errors.As(err, &small) {
		return err
	}
	return fmt.Errorf("beside the open models (%d): %w", rt.models, err)
}

// closing marks a model as closed; false if it was before.
func (rt *Runtime) closing(m *Model) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	was := m.closed
	m.closed = true
	return !was
}

// gone is end for a model that ran.
func (rt *Runtime) gone(m *Model) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.end(m)
}

// lacking is what the tokenizer asked for in vain because other models have the memory.
func (c *Checkpoint) lacking() int64 {
	var full *budget.NoRoomError
	if errors.As(c.tokErr, &full) {
		return full.Asked
	}
	return 0
}
