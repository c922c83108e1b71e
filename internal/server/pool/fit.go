package pool

import (
	"context"

	"github.com/spillway/spillway"
)

// contextStep is what lengths of context are tried in.
const contextStep = 64

// seats are how many sequences are tried where nobody says how many, before 1: those that share a sweep.
var seats = []int{32, 8}

// fit starts a model with the context of the options, or with as much of its trained one as fits.
func (p *Pool) fit(ctx context.Context, c *spillway.Checkpoint) (*spillway.Model, error) {
	o := p.options.Model
	o, err := fitting(c, o)
	for tries := 0; ; tries++ {
		if err != nil {
			return nil, err
		}
		m, full := c.Start(ctx, o)
		if full == nil || !noRoom(full) || tries == 5 || p.options.Model.Context > 0 || o.Context <= contextStep {
			return m, full
		}
		o.Context -= max(o.Context/10, 1) // what was measured has moved
	}
}

// fitting fills in the sequences and the context that the options leave open. For more sequences the context
// may shrink by a quarter.
func fitting(c *spillway.Checkpoint, o spillway.ModelOptions) (spillway.ModelOptions, error) {
	whole := c.Layout().Context
	if o.Context > 0 {
		whole = o.Context
	}
	with := func(n int) (spillway.ModelOptions, error) {
		o := o
		o.Sequences = n
		context, err := longest(c, o, whole)
		o.Context = context
		return o, err
	}
	if o.Sequences > 0 {
		return with(o.Sequences)
	}
	alone, err := with(1)
	if err != nil {
		return alone, err
	}
	for _, n := range seats {
		more, err := with(n)
		if err == nil && more.Context >= alone.Context*3/4 {
			return more, nil
		}
		if err != nil && !noRoom(err) {
			return more, err
		}
	}
	return alone, nil
}

// longest is the longest context up to whole that the memory holds; an error if not even a short one does,
// or if the options ask for all of it.
func longest(c *spillway.Checkpoint, o spillway.ModelOptions, whole int) (int, error) {
	fixed := o.Context > 0
	try := func(n int) error {
		o.Context = n
		_, err := c.Plan(o)
		return err
	}
	err := try(whole)
	if err == nil || !noRoom(err) || fixed {
		return whole, err
	}
	low, high := 0, (whole-1)/contextStep // in steps: low fits, or is 0
	for low < high {
		mid := (low + high + 1) / 2
		if err = try(mid * contextStep); err == nil {
			low = mid
		} else if high = mid - 1; !noRoom(err) {
			return 0, err
		}
	}
	if low == 0 {
		return 0, try(min(contextStep, whole))
	}
	return low * contextStep, nil
}
