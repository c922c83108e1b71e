package spillway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/tokenizer"
)

// A Limit holds answers to what was demanded of them. It is safe for concurrent use; nil demands nothing.
type Limit struct {
	kept    *grammar.Kept
	read    Dialects
	assured dialect.Assured
}

// heldTo is the Constraint of one answer; an answer that is read in the dialects has calls that are assured.
type heldTo struct {
	*grammar.Matcher
	read    Dialects
	assured dialect.Assured
}

// Constraint returns what limits one answer, for Request.Constraint.
func (l *Limit) Constraint() Constraint {
	if l == nil {
		return nil
	}
	return heldTo{l.kept.Matcher(), l.read, l.assured}
}

// Close gives back what the Limit holds, once its answers have ended.
func (l *Limit) Close() {
	if l != nil {
		l.kept.Close()
	}
}

// Constrain compiles what is demanded of the answers to a request whose prompt is its IDs, and names in the request
// the dialects to read them by. What was compiled before is used again. It fails with a *FormError where no answer
// can meet the demand, and with a *NoRoomError where the memory does not do. Close the Limit before the model.
func (m *Model) Constrain(ctx context.Context, r *Request, d Demand) (*Limit, error) {
	leave, err := m.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	w, err := m.wanted(r, d)
	if err != nil || w.form.Kind == 0 {
		return nil, err
	}
	cache, err := m.forms.open(m)
	if err != nil {
		return nil, err
	}
	kept, err := cache.Get(ctx, w.form)
	var full *NoRoomError
	switch {
	case err == nil:
		r.Dialects = w.read
		return &Limit{kept, w.read, w.assured}, nil
	case errors.As(err, &full), ctx.Err() != nil:
		return nil, err
	case w.optional:
		return nil, nil
	}
	return nil, w.refusal(ctx, cache, err)
}

// forms are what a model's Constrain works with, made when it is first called.
type forms struct {
	mu      sync.Mutex
	cache   *grammar.Cache
	trie    *mem.Buffer
	release func()
}

// open makes the vocabulary, and leases what it takes.
func (f *forms) open(m *Model) (*grammar.Cache, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cache != nil {
		return f.cache, nil
	}
	tok, err := m.Tokenizer()
	if err != nil {
		return nil, fmt.Errorf("an answer without text cannot be held to a form: %w", err)
	}
	s := formSizes(m.rt.Memory())
	words := modelTokens{tok, min(tok.Size(), m.model.Layout.Vocab)}
	work, err := m.rt.reserveForm(int64(words.size)*tokenBuildBytes, "building the vocabulary's trie")
	if err != nil {
		return nil, err
	}
	defer work()
	if f.release, err = m.rt.reserveForm(s.shared+int64(words.size)*tokenKeptBytes, "masks of the vocabulary"); err != nil {
		return nil, err
	}
	v, err := grammar.NewVocabulary(words, m.ends(words.size), f.alloc(m.rt))
	if err != nil {
		return nil, errors.Join(err, f.freeLocked())
	}
	v.LimitShared(int(s.shared))
	f.cache = grammar.NewCache(v, grammar.CacheOptions{Limits: s.limits, Idle: s.idle, Lease: m.rt.reserveForm})
	return f.cache, nil
}

const (
	tokenBuildBytes = 40 // of the heap while a vocabulary is made, for each token: its text, twice at most, and order
	tokenKeptBytes  = 8  // of the heap after that: tokens of the same text
)

func (f *forms) alloc(rt *Runtime) grammar.Alloc {
	return func(n int) ([]byte, error) {
		b, err := rt.newFormBuffer(n, "trie of the vocabulary")
		if err != nil {
			return nil, err
		}
		f.trie = b
		clear(b.Bytes()) // tests fill fresh memory with nonsense
		return b.Bytes(), nil
	}
}

// free gives everything back.
func (f *forms) free() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.freeLocked()
}

func (f *forms) stats() grammar.CacheStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cache == nil {
		return grammar.CacheStats{}
	}
	return f.cache.Stats()
}

func (f *forms) freeLocked() error {
	if f.cache != nil {
		f.cache.Close()
	}
	if f.release != nil {
		f.release()
	}
	var err error
	if f.trie != nil {
		err = f.trie.Free()
	}
	f.cache, f.release, f.trie = nil, nil, nil
	return err
}

// ends are the tokens that end the model's answers.
func (m *Model) ends(size int) []int32 {
	var all []int32
	for id := range m.defaults.End {
		if id >= 0 && int(id) < size {
			all = append(all, id)
		}
	}
	return all
}

// modelTokens are the tokens of a tokenizer that the model can choose.
type modelTokens struct {
	*tokenizer.Tokenizer
	size int
}

func (t modelTokens) Size() int { return t.size }

func (t modelTokens) ID(token string) (int32, bool) {
	id, ok := t.Tokenizer.ID(token)
	return id, ok && int(id) < t.size
}

// sizes bound what forms take.
type sizes struct {
	limits cfg.Limits
	shared int64 // masks that grammars have in common
	idle   int64 // compiled grammars that nobody uses
}

// formTime is what compiling may take.
const formTime = 5 * time.Second

// formSizes are shares of the memory, in bounds.
func formSizes(memory int64) sizes {
	share := func(part, least, most int64) int64 { return min(max(memory/part, least), most) }
	tables := share(256, 512<<10, 8<<20)
	return sizes{
		limits: cfg.Limits{Time: formTime, Memory: int(tables), Nodes: 1 << 16}, shared: tables, idle: share(64, 512<<10, 64<<20),
	}
}
