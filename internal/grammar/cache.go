package grammar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
)

// Lease grants n bytes until release is called, or says why it cannot.
type Lease func(n int64, what string) (release func(), err error)

// CacheOptions bound what a Cache takes.
type CacheOptions struct {
	Limits cfg.Limits // of each Source
	Idle   int64      // bytes of constraints that nobody uses, kept for the next one who asks
	Lease  Lease      // memory comes from here before it exists; nil: it is not counted
}

// Cache compiles Sources for one vocabulary, and shares and keeps what came of them. It is safe for
// concurrent use.
type Cache struct {
	vocab   *Vocabulary
	o       CacheOptions
	compile chan struct{} // one at a time: each takes memory and a processor

	mu      sync.Mutex
	entries map[string]*entry
	tick    int64
	active  int           // entries that have leased all that they may come to take
	freed   chan struct{} // closed and replaced when one of them is done
	stats   CacheStats
}

// CacheStats count what a Cache did.
type CacheStats struct {
	Compiled, Hits, Refused int64
	Compiling               time.Duration // all of them together
}

// entry is a Source that is compiled, or being compiled. The Cache's lock guards it, but for what is behind done.
type entry struct {
	done       chan struct{} // closed when constraint or err is there
	constraint *Constraint
	err        error
	once       bool // nobody else can ask for it
	users      int
	used       int64
	idle       int64  // bytes, while there are no users
	release    func() // of its memory
}

// NewCache makes an empty Cache.
func NewCache(v *Vocabulary, o CacheOptions) *Cache {
	if o.Lease == nil {
		o.Lease = func(int64, string) (func(), error) { return func() {}, nil }
	}
	o.Limits = cfg.New(o.Limits).Limits()
	return &Cache{vocab: v, o: o, compile: make(chan struct{}, 1), freed: make(chan struct{}), entries: map[string]*entry{}}
}

// Get compiles a Source, or returns what was compiled before. Who asks for one that is being compiled waits
// for it. Close what it returns.
func (c *Cache) Get(ctx context.Context, s Source) (*Kept, error) {
	for {
		k, err := c.get(ctx, s)
		if !errors.Is(err, errAbandoned) || ctx.Err() != nil {
			return k, err
		}
	}
}

// errAbandoned is of an entry whose maker left before it was compiled.
var errAbandoned = errors.New("grammar: compiling was given up")

func (c *Cache) get(ctx context.Context, s Source) (*Kept, error) {
	key := s.Hash()
	once := key == ""
	c.mu.Lock()
	c.tick++
	if once {
		key = fmt.Sprint("once ", c.tick)
	}
	e := c.entries[key]
	fresh := e == nil
	if fresh {
		e = &entry{done: make(chan struct{}), once: once}
		c.entries[key] = e
	}
	e.users++
	e.used = c.tick
	c.mu.Unlock()
	if fresh {
		c.fill(ctx, e, s, key)
	}
	return c.wait(ctx, e, key, fresh)
}

// wait returns an entry once it can be used.
func (c *Cache) wait(ctx context.Context, e *entry, key string, fresh bool) (*Kept, error) {
	err := error(nil)
	select {
	case <-e.done:
		err = e.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil && !fresh {
		err = c.revive(ctx, e)
	}
	k := &Kept{c: c, e: e, key: key}
	c.mu.Lock()
	switch {
	case err != nil && fresh && ctx.Err() == nil:
		c.stats.Refused++
	case err != nil:
	case fresh:
		c.stats.Compiled++
	default:
		c.stats.Hits++
	}
	c.mu.Unlock()
	if err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// UsedBytes is what a Constraint can come to take while it is used: a machine's tables and its masks, of the present
// generation and of the one before it, which some Matchers still have.
func UsedBytes(l cfg.Limits) int64 { return 4 * int64(cfg.New(l).Limits().Memory) }

// Bytes of memory that compiling takes at most, by measurement.
const (
	denseNodes = 1 << 15 // automata are built of no more states,
	denseBytes = 768     // each with so many, and of
	nodeBytes  = 256     // each expression beyond them
	textBytes  = 32      // each byte of the Source
	leastNodes = 1 << 12 // compiling is not tried with less
)

// CompileBytes is what compiling a Source without text takes at most.
func CompileBytes(l cfg.Limits) int64 {
	n := int64(cfg.New(l).Limits().Nodes)
	return denseBytes*min(n, denseNodes) + nodeBytes*max(n-denseNodes, 0)
}

// fill compiles an entry.
func (c *Cache) fill(ctx context.Context, e *entry, s Source, key string) {
	e.err = fmt.Errorf("grammar: compiling a %v failed", s.Kind) // if it panics, those who wait see this
	defer func() {
		if e.err != nil {
			c.mu.Lock()
			delete(c.entries, key)
			c.mu.Unlock()
		}
		close(e.done)
	}()
	select {
	case c.compile <- struct{}{}:
		defer func() { <-c.compile }()
	case <-ctx.Done():
		e.err = fmt.Errorf("%w: %w", errAbandoned, context.Cause(ctx))
		return
	}
	if e.err = c.fillIn(ctx, e, s); e.err != nil && ctx.Err() != nil {
		e.err = fmt.Errorf("%w: %w", errAbandoned, context.Cause(ctx))
	}
}

func (c *Cache) fillIn(ctx context.Context, e *entry, s Source) error {
	w, err := c.room(ctx, s)
	if err != nil {
		return err
	}
	if e.constraint, err = c.make(s, w); err != nil {
		w.release()
		return err
	}
	e.release, err = c.settle(ctx, w, UsedBytes(c.o.Limits)+int64(e.constraint.Bytes()))
	return err
}

// room is memory to compile in.
type room struct {
	limits  cfg.Limits
	bytes   int64
	release func()
	lacking error // why there is not more; nil: there is enough
}

// room leases what compiling takes, less if there is not more.
func (c *Cache) room(ctx context.Context, s Source) (w room, err error) {
	for w.limits = c.o.Limits; ; w.limits.Nodes /= 2 {
		w.bytes = CompileBytes(w.limits) + textBytes*s.size()
		last := w.limits.Nodes/2 < leastNodes
		w.release, err = c.lease(ctx, w.bytes, "compiling a grammar", last)
		if err == nil || last {
			return w, err
		}
		w.lacking = err
	}
}

// make compiles. What would fit with more memory lacks memory.
func (c *Cache) make(s Source, w room) (*Constraint, error) {
	begin := time.Now()
	constraint, err := Compile(s, c.vocab, w.limits)
	took := time.Since(begin)
	var own *cfg.LimitError
	var words *regular.LimitError
	if w.lacking != nil && (errors.As(err, &own) || errors.As(err, &words)) {
		err = w.lacking
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Compiling += took
	return constraint, err
}

// settle exchanges the room to compile in for n bytes.
func (c *Cache) settle(ctx context.Context, w room, n int64) (release func(), err error) {
	if release, err = c.lease(ctx, n, "a grammar", false); err != nil && n <= w.bytes {
		release, err = w.release, nil
	} else {
		if err != nil {
			release, err = c.lease(ctx, n, "a grammar", true)
		}
		defer w.release()
	}
	if err == nil {
		c.mu.Lock()
		c.active++
		c.mu.Unlock()
	}
	return release, err
}

// lease takes memory, from idle entries if need be, and if wait is set when those who use others are done with them.
func (c *Cache) lease(ctx context.Context, n int64, what string, wait bool) (func(), error) {
	for {
		c.mu.Lock()
		freed, others := c.freed, c.active > 0
		c.mu.Unlock()
		release, err := c.o.Lease(n, what)
		if err != nil && c.trim(0) {
			release, err = c.o.Lease(n, what)
		}
		if err == nil || !wait || !others {
			return release, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// revive leases for an entry that was idle what it may come to take.
func (c *Cache) revive(ctx context.Context, e *entry) error {
	c.mu.Lock()
	idle := e.idle
	c.mu.Unlock()
	if idle == 0 {
		return nil
	}
	release, err := c.lease(ctx, UsedBytes(c.o.Limits)+idle, "a grammar", true)
	if err != nil {
		return err
	}
	c.mu.Lock()
	old := release
	if e.idle != 0 {
		e.idle, e.release, old = 0, release, e.release
		c.active++
	}
	c.mu.Unlock()
	old()
	return nil
}

// trim drops idle entries, those that were not used for the longest time first, until they take no more than
// so many bytes; false if there was none to drop.
func (c *Cache) trim(most int64) (dropped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := int64(0)
	var idle []string
	for key, e := range c.entries {
		if e.users == 0 {
			total += e.idle
			idle = append(idle, key)
		}
	}
	slices.SortFunc(idle, func(a, b string) int { return int(c.entries[a].used - c.entries[b].used) })
	for _, key := range idle {
		if total <= most {
			break
		}
		e := c.entries[key]
		total -= e.idle
		delete(c.entries, key)
		e.release()
		dropped = true
	}
	return dropped
}

// Stats returns the counts so far.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Close drops what nobody uses; the rest goes when it is closed.
func (c *Cache) Close() {
	c.mu.Lock()
	c.o.Idle = 0
	c.mu.Unlock()
	c.trim(0)
}

// Kept is a Constraint that a Cache keeps until Close.
type Kept struct {
	c    *Cache
	e    *entry
	key  string
	once sync.Once
}

// Matcher begins a new answer.
func (k *Kept) Matcher() *Matcher { return k.e.constraint.Matcher() }

// Close ends the use. No Matcher of it may be used after that.
func (k *Kept) Close() { k.once.Do(func() { k.c.leave(k.e, k.key) }) }

// leave ends one use of an entry. The last one measures what it takes.
func (c *Cache) leave(e *entry, key string) {
	c.mu.Lock()
	e.users--
	if e.users > 0 {
		c.mu.Unlock()
		return
	}
	most := c.o.Idle
	if e.constraint != nil && e.idle == 0 && e.release != nil { // all that it may come to take is free
		c.active--
		defer c.free()
	}
	switch {
	case e.constraint == nil || e.once || c.entries[key] != e:
		c.dropLocked(e, key)
	default:
		c.restLocked(e, key)
	}
	c.mu.Unlock()
	c.trim(most)
}

// free lets those who wait for memory look again.
func (c *Cache) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.freed)
	c.freed = make(chan struct{})
}

func (c *Cache) dropLocked(e *entry, key string) {
	if c.entries[key] == e {
		delete(c.entries, key)
	}
	if e.release != nil {
		e.release()
	}
}

// restLocked leaves an entry without users with what it takes.
func (c *Cache) restLocked(e *entry, key string) {
	n := int64(e.constraint.Bytes())
	if n > c.o.Idle {
		c.dropLocked(e, key)
		return
	}
	e.release() // of more than n
	release, err := c.o.Lease(n, "an idle grammar")
	if err != nil {
		e.release = nil
		c.dropLocked(e, key)
		return
	}
	e.idle, e.release = max(n, 1), release
}
