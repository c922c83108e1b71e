package grammar

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// Cache keeps compiled Sources of one vocabulary, the most recently used ones, within a number of bytes.
// Whoever asks for a Source that is being compiled waits for it. It is safe for concurrent use.
type Cache struct {
	vocab  *Vocabulary
	limits cfg.Limits
	bytes  int

	mu      sync.Mutex
	entries map[[sha256.Size]byte]*entry
	tick    int64
}

type entry struct {
	done       chan struct{} // closed when constraint or err is there
	constraint *Constraint
	err        error
	used       int64
}

// NewCache makes a Cache that keeps up to a number of bytes; l bounds each Source.
func NewCache(v *Vocabulary, l cfg.Limits, bytes int) *Cache {
	return &Cache{vocab: v, limits: l, bytes: bytes, entries: map[[sha256.Size]byte]*entry{}}
}

// Get compiles a Source, or returns what was compiled before.
func (c *Cache) Get(s Source) (*Constraint, error) {
	if s.Format != nil && s.Key == "" {
		return Compile(s, c.vocab, c.limits)
	}
	key := s.hash()
	c.mu.Lock()
	c.tick++
	e := c.entries[key]
	if e != nil {
		e.used = c.tick
		c.mu.Unlock()
		<-e.done
		return e.constraint, e.err
	}
	e = &entry{done: make(chan struct{}), used: c.tick}
	c.entries[key] = e
	c.mu.Unlock()
	c.compile(e, s, key)
	return e.constraint, e.err
}

func (c *Cache) compile(e *entry, s Source, key [sha256.Size]byte) {
	e.err = fmt.Errorf("grammar: compiling a %v failed", s.Kind) // if it panics, those who wait see this
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(e.done)
		if e.err != nil {
			delete(c.entries, key)
		}
		c.trim(e)
	}()
	e.constraint, e.err = Compile(s, c.vocab, c.limits)
}

// trim drops what was not used for the longest time, but never keep.
func (c *Cache) trim(keep *entry) {
	total := 0
	var keys [][sha256.Size]byte
	for key, e := range c.entries {
		select {
		case <-e.done:
			total += e.constraint.Bytes()
			keys = append(keys, key)
		default:
		}
	}
	slices.SortFunc(keys, func(a, b [sha256.Size]byte) int { return int(c.entries[a].used - c.entries[b].used) })
	for _, key := range keys {
		if total <= c.bytes {
			return
		}
		if e := c.entries[key]; e != keep {
			total -= e.constraint.Bytes()
			delete(c.entries, key)
		}
	}
}

// Bytes is the memory of what is kept.
func (c *Cache) Bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for _, e := range c.entries {
		select {
		case <-e.done:
			total += e.constraint.Bytes()
		default:
		}
	}
	return total
}

// hash is of everything that a Source says; parts are told apart by their lengths.
func (s *Source) hash() [sha256.Size]byte {
	h := sha256.New()
	part := func(text string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(text)))
		h.Write(n[:])
		h.Write([]byte(text))
	}
	part(fmt.Sprint(uint8(s.Kind), s.Schema.FlexibleSpace, s.Schema.MaxSpace, len(s.Choices), s.Format != nil))
	part(s.Text)
	part(s.Key)
	for _, text := range s.Choices {
		part(text)
	}
	for _, uri := range slices.Sorted(maps.Keys(s.Schema.Others)) {
		part(uri)
		part(string(s.Schema.Others[uri]))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
