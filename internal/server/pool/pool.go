// Package pool keeps the models of a server: they are loaded when they are first asked for, unloaded when
// they are idle, and share one runtime's memory. A model that does not fit beside others makes idle ones
// go, the longest idle first; those in use stay.
package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway/spillway"
)

// A Spec is a model that a pool offers.
type Spec struct {
	Name string // that clients use; empty: the model's own
	Path string // a GGUF file or a folder in Hugging Face layout; empty: the model inside the binary
	// Alias is a second name, which lists do not show: what the operator called the model by.
	Alias string
	// Short makes the alias the name, and the model's own name the alias.
	Short bool
}

// Forever keeps a model until its memory is needed.
const Forever = time.Duration(-1)

// Options shape a Pool.
type Options struct {
	// KeepAlive is how long a model stays loaded without requests; negative: until its memory is needed.
	KeepAlive time.Duration
	// Wait is how long a request waits for a model that does not fit beside those in use; 0: not at all.
	Wait time.Duration
	// Model shapes every model. A Context of 0 is the trained one, cut to what fits.
	Model spillway.ModelOptions
	// Prepare changes a model before it is started, such as its chat template; nil for nothing.
	Prepare func(c *spillway.Checkpoint) error
	// Loaded is told of every model that was started, and whether its context was cut; nil for nobody.
	Loaded func(name string, m *spillway.Model)
	// Try makes New fail, as loading it would, if there is no room for the first model.
	Try bool
}

// A Pool is safe for concurrent use.
type Pool struct {
	rt      *spillway.Runtime
	options Options
	entries []*entry // in the order of the specs; fixed

	mu      sync.Mutex
	closed  bool
	changed chan struct{} // closed and replaced when an entry or closed changes
	busy    bool          // a model is being loaded or unloaded: one at a time
	freed   int64         // times that a model came to rest or went
	work    sync.WaitGroup
}

// An entry is one model of the pool. What changes is guarded by the pool's lock.
type entry struct {
	Facts
	path    string
	alias   string
	model   *spillway.Model // nil: not loaded
	longest int             // bytes of the longest token
	drive   uint64          // that its files lie on
	users   int             // that hold it or wait for it
	behind  int             // of them, those that wait until another model has had its turn
	wants   time.Time       // since when users wait for room to load it; zero: they do not
	tried   int64           // freed, when it was last tried
	err     error           // of the last attempt to load
	tries   int             // that ended
	since   time.Time       // idle since
	keep    time.Duration   // of the last user
	timer   *time.Timer     // that unloads it
	health  health

	showsTools atomic.Bool // of the loaded one: its chat template writes tools into prompts
}

// An UnknownError says that the pool has no model of that name.
type UnknownError struct {
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the model %.200q does not exist; there is %s", e.Name, strings.Join(e.Known, ", "))
}

// A BusyError says that a model does not fit beside those that are in use.
type BusyError struct {
	Name string
	Used []string
	Err  error // why it does not fit
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("the model %s does not fit beside %s, in use now: %v", e.Name, strings.Join(e.Used, ", "), e.Err)
}

func (e *BusyError) Unwrap() error { return e.Err }

// New returns a pool of models. It reads what each says about itself, and no weights.
func New(ctx context.Context, rt *spillway.Runtime, specs []Spec, o Options) (*Pool, error) {
	p := &Pool{rt: rt, options: o, changed: make(chan struct{})}
	for i, s := range specs {
		f, err := p.look(ctx, s, o.Try && i == 0)
		if err != nil {
			return nil, err
		}
		if s.Short {
			f.Name, s.Alias = s.Alias, f.Name
		}
		if other := p.find(f.Name); other != nil {
			return nil, fmt.Errorf("two models are called %s (%s and %s): give one another name, NAME=MODEL", f.Name, source(other.path), source(s.Path))
		}
		p.entries = append(p.entries, &entry{Facts: f, path: s.Path, alias: s.Alias, keep: o.KeepAlive})
	}
	return p, nil
}

func source(path string) string {
	if path == "" {
		return "the embedded model"
	}
	return path
}

// find returns the entry of a name; as Ollama has it, the tag :latest may be left out or added.
func (p *Pool) find(name string) *entry {
	plain := func(s string) string { return strings.TrimSuffix(s, ":latest") }
	i := slices.IndexFunc(p.entries, func(e *entry) bool { return e.Name == name })
	if i < 0 {
		i = slices.IndexFunc(p.entries, func(e *entry) bool { return plain(e.Name) == plain(name) })
	}
	if i < 0 {
		i = slices.IndexFunc(p.entries, func(e *entry) bool { return e.alias != "" && plain(e.alias) == plain(name) })
	}
	if i < 0 {
		return nil
	}
	return p.entries[i]
}

// Names are the models' names; the first one's is the default.
func (p *Pool) Names() []string {
	names := make([]string, len(p.entries))
	for i, e := range p.entries {
		names[i] = e.Name
	}
	return names
}

// wait waits for a change, without the lock.
func (p *Pool) wait(ctx context.Context) error {
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Pool) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// leave ends one user of an entry; the last one's end begins its idle time.
func (p *Pool) leave(e *entry) {
	e.users--
	switch {
	case e.users == 0 && e.model == nil:
		e.wants = time.Time{}
	case e.users > e.behind || e.model == nil:
		return
	case e.users == 0:
		p.idle(e)
	}
	p.freed++
	p.change() // somebody may wait for an idle one
}

// inUse reports whether somebody has the model, or is about to take it.
func (e *entry) inUse() bool { return e.users > e.behind }

// idle begins a model's idle time.
func (p *Pool) idle(e *entry) {
	e.since = time.Now()
	if !p.closed && e.keep >= 0 {
		e.timer = time.AfterFunc(e.keep, func() { p.expire(e) })
	}
}

func (e *entry) stopTimer() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

// expire unloads a model that was idle for long enough.
func (p *Pool) expire(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.busy && !p.closed {
		_ = p.wait(context.Background())
	}
	if p.closed || e.users > 0 || e.model == nil || e.keep < 0 || time.Since(e.since) < e.keep {
		return
	}
	p.unload(e)
}

// unload closes an idle model. The lock is held, and is free while the model closes.
func (p *Pool) unload(e *entry) {
	m := e.model
	e.model = nil
	e.stopTimer()
	p.busy = true
	p.freed++
	p.mu.Unlock()
	err := closeModel(m)
	p.mu.Lock()
	p.busy = false
	if err != nil {
		e.err = err
	}
	p.change()
}

// Close unloads all models, which ends what they do.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.change()
	for p.busy {
		_ = p.wait(context.Background())
	}
	var errs []error
	for _, e := range p.entries {
		e.stopTimer()
		if m := e.model; m != nil {
			e.model = nil
			p.mu.Unlock()
			errs = append(errs, closeModel(m))
			p.mu.Lock()
		}
	}
	p.mu.Unlock()
	p.work.Wait()
	p.mu.Lock()
	return errors.Join(errs...)
}
