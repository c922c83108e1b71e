package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillway/spillway"
)

// Acquire returns a model, loading it if need be, and keeps it loaded until Release. Where it does not fit beside those in
// use it waits until they are idle, as long as Options.Wait says, and then fails with a *BusyError. Models that are asked
// for without end have turns: who comes for one in use waits while another has waited for its room for longer than that.
func (p *Pool) Acquire(ctx context.Context, name string) (*Held, error) {
	e := p.find(name)
	if e == nil {
		return nil, &UnknownError{name, p.Names()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users++
	e.stopTimer()
	a := attempt{p: p, e: e, tries: e.tries}
	h, err := a.run(ctx)
	if err != nil {
		p.leave(e)
	}
	return h, err
}

// An attempt is one caller of Acquire. The pool's lock is held while it does not wait.
type attempt struct {
	p     *Pool
	e     *entry
	tries int       // of the entry, that this one has seen
	until time.Time // it waits for room; zero: it has not had to

	waited, steppedBack bool
}

func (a *attempt) run(ctx context.Context) (*Held, error) {
	p, e := a.p, a.e
	for {
		var err error
		first := p.first(e)
		switch {
		case p.closed:
			return nil, fmt.Errorf("the server's models are %w", spillway.ErrClosed)
		case e.model != nil && first == nil:
			return &Held{Model: e.model, Name: e.Name, LongestToken: e.longest, pool: p, entry: e, keep: p.options.KeepAlive}, nil
		case e.model == nil && e.tries != a.tries && !a.again():
			return nil, e.err
		case first != nil:
			err = a.stepBack(ctx, first)
		case e.tries != a.tries && e.tried == p.freed:
			err = a.waitForRoom(ctx, e.err)
		case !p.busy:
			a.tries = e.tries
			p.start(e)
			fallthrough
		default:
			err = p.wait(ctx)
		}
		if err != nil {
			return nil, err
		}
		a.waited = true
	}
}

// again reports whether waiting may help after the last attempt to load.
func (a *attempt) again() bool {
	var inUse *BusyError
	return errors.As(a.e.err, &inUse) && a.p.options.Wait > 0
}

// first is another model whose turn comes before that of e: it has waited for room for a while, and longer than e.
func (p *Pool) first(e *entry) *entry {
	for _, other := range p.entries {
		if other == e || other.wants.IsZero() || time.Since(other.wants) < p.turn() {
			continue
		}
		if e.wants.IsZero() || other.wants.Before(e.wants) {
			return other
		}
	}
	return nil
}

// turn is how long a model is given out while another one waits for its room.
func (p *Pool) turn() time.Duration { return min(5*time.Second, p.options.Wait/4) }

// stepBack waits while another model has its turn. A model for which nobody does more than that is not in use.
func (a *attempt) stepBack(ctx context.Context, other *entry) error {
	p, e := a.p, a.e
	e.behind++
	if e.model != nil && !e.inUse() && a.waited && !a.steppedBack { // the other one may have seen it in use
		p.freed++
		p.change()
	}
	a.steppedBack = true
	err := a.waitForRoom(ctx, &BusyError{e.Name, []string{other.Name}, errTurn})
	e.behind--
	return err
}

var errTurn = errors.New("it is the other one's turn")

// waitForRoom waits for a change, and gives up with why when its time is over.
func (a *attempt) waitForRoom(ctx context.Context, why error) error {
	if a.until.IsZero() {
		a.until = time.Now().Add(a.p.options.Wait)
	}
	c, cancel := context.WithDeadlineCause(ctx, a.until, why)
	defer cancel()
	return a.p.wait(c)
}
