package spillway

import (
	"errors"
	"fmt"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/plan"
)

// SetMemory changes the hard cap for the whole process, at any moment. Models that are open are planned anew between
// two of their steps: with less memory they give weights back and stream them, with more they keep more. It
// returns when the new cap holds, or begins to; answers that run go on, and no bit of them changes. A cap below the
// least that the models need fails with a *TooSmallError that names the least, and changes nothing.
//
// With several models, what a lower cap takes is shared by what each holds beyond its least, and what a
// higher one gives by what each has not in memory.
func (rt *Runtime) SetMemory(bytes int64) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch {
	case rt.closed:
		return fmt.Errorf("the runtime is %w", ErrClosed)
	case bytes <= 0:
		return fmt.Errorf("a memory of %d bytes is not possible", bytes)
	case len(rt.open) == 0:
		rt.limit = bytes
		return nil
	}
	for _, m := range rt.open { // what a log takes is no part of what a model needs
		m.options.ExpertLog.drop(errLogResized)
	}
	changes, err := rt.divide(bytes)
	if err != nil {
		return err
	}
	if bytes > rt.limit {
		if err := rt.setLimit(bytes); err != nil {
			return err
		}
	}
	for _, c := range changes { // what some give others may get
		if c.grows() {
			continue
		}
		if err := rt.change(c); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if !c.grows() {
			continue
		}
		if err := rt.change(c); err != nil {
			return err
		}
	}
	return rt.setLimit(bytes)
}

func (rt *Runtime) setLimit(bytes int64) error {
	err := rt.ledger.SetLimit(bytes)
	if err == nil {
		rt.limit = bytes
	}
	return err
}

// change is another plan for a model.
type change struct {
	m       *Model
	request plan.Request
	plan    *plan.Plan
	own     int64 // what it adds to the runtime pool
}

// held is what a plan leases for its model alone.
func held(p *[budget.Pools]int64) (n int64) {
	for _, pool := range p {
		n += pool
	}
	return n - p[budget.Runtime]
}

func (c *change) grows() bool { return held(&c.plan.Pools) > held(&c.m.CurrentPlan().Pools) }

// divide plans all models for another cap.
func (rt *Runtime) divide(bytes int64) ([]change, error) {
	used := rt.ledger.Snapshot().Pools[budget.Runtime].Used
	shares, err := rt.shares(bytes-used, bytes)
	if err != nil {
		return nil, err
	}
	changes := make([]change, len(rt.open))
	for i, m := range rt.open {
		others := int64(0)
		for k := range shares {
			if k != i {
				others += shares[k]
			}
		}
		r, extra := m.planned, m.CurrentPlan().Pools[budget.Runtime]-m.planned.Runtime
		r.Budget, r.Runtime, r.Start = bytes-others, used-extra, 0 // what the start took is over
		if m.options.Memory > 0 {
			r.Budget = min(r.Budget, m.options.Memory)
		}
		p, err := plan.Make(r)
		if err != nil {
			return nil, rt.amongModels(err)
		}
		changes[i] = change{m, r, p, p.Pools[budget.Runtime] - used}
	}
	return changes, nil
}

// amongModels adds to an error that there are several.
func (rt *Runtime) amongModels(err error) error {
	if len(rt.open) > 1 {
		return fmt.Errorf("with %d models open: %w", len(rt.open), err)
	}
	return err
}

// shares divides room among the models. A single one has it all.
func (rt *Runtime) shares(room, bytes int64) ([]int64, error) {
	shares := make([]int64, len(rt.open))
	if len(shares) == 1 {
		shares[0] = room
		return shares, nil
	}
	var least, now, beyond, lacking []int64
	for _, m := range rt.open {
		r := m.planned
		r.Budget = 0
		var small *TooSmallError
		if _, err := plan.Make(r); !errors.As(err, &small) {
			return nil, fmt.Errorf("internal error: a plan without memory: %w", err)
		}
		holds := held(&m.CurrentPlan().Pools)
		least, now = append(least, held(&small.Pools)+shareSlack), append(now, holds)
		beyond = append(beyond, max(holds-least[len(least)-1], 0))
		lacking = append(lacking, max(m.cat.Bytes()-m.CurrentPlan().Pools[budget.Weights], 0))
	}
	if sum(least) > room {
		return nil, &TooSmallError{Budget: bytes, Least: (sum(least) + bytes - room + machine.MiB - 1) / machine.MiB * machine.MiB,
			Pools: rt.ledgerPools()}
	}
	from, by := now, lacking
	if room < sum(now) {
		from, by = least, beyond
	}
	for i := range shares {
		shares[i] = from[i] + part(room-sum(from), by[i], sum(by))
	}
	return shares, nil
}

// shareSlack is what the least of a model among others is rounded up by: its page tables.
const shareSlack = machine.MiB

// ledgerPools is what is leased now.
func (rt *Runtime) ledgerPools() (pools [budget.Pools]int64) {
	for i, p := range rt.ledger.Snapshot().Pools {
		pools[i] = p.Used
	}
	return pools
}

func sum(all []int64) (n int64) {
	for _, x := range all {
		n += x
	}
	return n
}

// part is n·share/all, or nothing of nothing.
func part(n, share, all int64) int64 {
	if all == 0 {
		return 0
	}
	return int64(float64(n) * (float64(share) / float64(all)))
}

// change carries a change out. Where there is more room in the end the runtime pool comes first, else the model does. The
// lock is held.
func (rt *Runtime) change(c change) error {
	own := func() error { return rt.own.Resize(rt.own.Bytes() + c.own) }
	model := func() error { return c.m.engine.Between(func() error { return c.m.resize(c.plan) }) }
	first, second := model, own
	if c.grows() {
		first, second = own, model
	}
	if err := first(); err != nil {
		return err
	}
	if err := second(); err != nil {
		return err
	}
	c.m.added += c.own
	c.m.planned = c.request
	c.m.plan.Store(c.plan)
	return nil
}

// resize makes the model run by another plan, between two steps.
func (m *Model) resize(p *plan.Plan) error {
	rows, heads := m.rows(p)
	if before, _ := m.rows(m.CurrentPlan()); rows != before {
		if err := m.arena.Free(); err != nil {
			return err
		}
		m.arena = nil // Close does not free it again
		arena, err := m.newArena(p)
		if err != nil {
			return m.pager.Break(err)
		}
		m.arena, m.env.Arena = arena, mem.NewArena(arena)
	}
	m.engine.SetRows(rows, heads, !p.Resident)
	return m.pager.Resize(p.Placement)
}
