package pool

import (
	"context"
	"sync"
	"time"

	"github.com/spillway/spillway"
)

// Held is a model that stays loaded until Release.
type Held struct {
	*spillway.Model
	Name         string
	LongestToken int // in bytes; 0 without a tokenizer

	pool  *Pool
	entry *entry
	keep  time.Duration
	once  sync.Once
}

// KeepAlive says how long the model stays loaded after this use; negative: until its memory is needed.
func (h *Held) KeepAlive(d time.Duration) { h.keep = d }

// ShowsTools reports whether a prompt of the model, since it was loaded, was another one for its request's tools.
func (h *Held) ShowsTools() bool { return h.entry.showsTools.Load() }

// SawTools notes such a prompt.
func (h *Held) SawTools() { h.entry.showsTools.Store(true) }

// Release lets the model go. It may be called more than once.
func (h *Held) Release() {
	h.once.Do(func() {
		h.pool.mu.Lock()
		defer h.pool.mu.Unlock()
		h.entry.keep = h.keep
		h.pool.leave(h.entry)
	})
}

// Unload unloads a model as soon as nobody uses it.
func (p *Pool) Unload(ctx context.Context, name string) error {
	e := p.find(name)
	if e == nil {
		return &UnknownError{name, p.Names()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.keep = 0
	if e.users > 0 || e.model == nil {
		return nil
	}
	for p.busy {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	if e.users == 0 && e.model != nil && !p.closed {
		p.unload(e)
	}
	return nil
}
