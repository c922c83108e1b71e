package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillway/spillway"
)

// Load loads a model and leaves it idle.
func (p *Pool) Load(ctx context.Context, name string) error {
	h, err := p.Acquire(ctx, name)
	if err == nil {
		h.Release()
	}
	return err
}

// start loads a model on a goroutine of its own, so that a client that leaves does not stop it for others.
// The lock is held.
func (p *Pool) start(e *entry) {
	p.busy = true
	e.tried = p.freed
	p.work.Go(func() {
		m, longest, err := p.load(e)
		var files []stamp
		if m != nil {
			files = stampsOf(m)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy = false
		e.model, e.longest, e.err = m, longest, err
		e.tries++
		var inUse *BusyError
		switch {
		case !errors.As(err, &inUse):
			e.wants = time.Time{}
		case e.wants.IsZero() && p.options.Wait > 0 && e.users > 0:
			e.wants = time.Now()
		}
		switch {
		case m != nil:
			e.health.files, e.drive = files, m.Drive()
			e.showsTools.Store(false)
		case !noRoom(err):
			e.fail()
		}
		if m != nil && e.users == 0 {
			p.idle(e)
		}
		p.change()
	})
}

// load starts a model, making idle ones go until there is room.
func (p *Pool) load(e *entry) (*spillway.Model, int, error) {
	ctx := context.Background()
	for {
		m, err := p.open(ctx, e)
		if err == nil {
			if p.options.Loaded != nil {
				p.options.Loaded(e.Name, m)
			}
			return m, longestToken(m), nil
		}
		if !noRoom(err) {
			return nil, 0, fmt.Errorf("loading the model %s: %w", e.Name, err)
		}
		victim, used := p.victim(e)
		switch {
		case victim != nil:
			if closing := closeModel(victim); closing != nil {
				return nil, 0, errors.Join(err, closing)
			}
		case len(used) > 0:
			return nil, 0, &BusyError{e.Name, used, err}
		default:
			return nil, 0, fmt.Errorf("loading the model %s: %w", e.Name, err)
		}
	}
}

// victim takes the model that was idle the longest out of the pool; nil without one, and then the names of
// those in use.
func (p *Pool) victim(but *entry) (m *spillway.Model, used []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var oldest *entry
	for _, e := range p.entries {
		switch {
		case e == but || e.model == nil:
		case e.inUse():
			used = append(used, e.Name)
		case oldest == nil || e.since.Before(oldest.since):
			oldest = e
		}
	}
	if oldest == nil {
		return nil, used
	}
	m, oldest.model = oldest.model, nil
	oldest.stopTimer()
	return m, nil
}

// noRoom reports whether an error is about too little memory.
func noRoom(err error) bool {
	var small *spillway.TooSmallError
	var full *spillway.NoRoomError
	return errors.As(err, &small) || errors.As(err, &full)
}

// checkpoint reads what a model says about itself.
func (p *Pool) checkpoint(ctx context.Context, path string) (*spillway.Checkpoint, error) {
	if path == "" {
		return p.rt.LoadEmbedded(ctx)
	}
	return p.rt.Load(ctx, path)
}

// open starts a model with the context that was asked for, or with as much of the trained one as fits.
func (p *Pool) open(ctx context.Context, e *entry) (*spillway.Model, error) {
	c, err := p.checkpoint(ctx, e.path)
	if err != nil {
		return nil, err
	}
	if p.options.Prepare != nil {
		err = p.options.Prepare(c)
	}
	var m *spillway.Model
	if err == nil {
		m, err = p.fit(ctx, c)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return m, nil
}

// closeModel closes a model and the checkpoint that it was started from.
func closeModel(m *spillway.Model) error { return errors.Join(m.Close(), m.Checkpoint.Close()) }
