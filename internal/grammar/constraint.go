// Package grammar says which tokens may come next, so that an answer is what was asked for: JSON of a schema,
// a regular expression, a choice, a grammar in the notation of llama.cpp (GBNF) or Lark, or free text with
// such parts behind triggers.
//
// A grammar becomes a machine over bytes (internal/grammar/cfg), so that any tokenizer works, also where
// tokens split characters. What a machine's part allows is found once by a walk over the trie of the
// vocabulary and kept; what leaves the part is walked on with the real stack.
package grammar

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// Constraint is a compiled grammar over a vocabulary: what all its Matchers share. It is safe for concurrent
// use.
type Constraint struct {
	grammar *cfg.Grammar
	vocab   *Vocabulary
	named   []int32 // tokens that the grammar names, sorted: they come where it says so, never as text

	mu  sync.Mutex
	gen *generation
}

// generation is a machine and what is kept about its Configs. When its memory is used up, a new one takes
// its place, and every Matcher brings its own state over.
type generation struct {
	machine *cfg.Machine
	allowed *allowed
	control []int32
}

// NewConstraint joins a grammar with a vocabulary.
func NewConstraint(g *cfg.Grammar, v *Vocabulary) (*Constraint, error) {
	for _, id := range g.Tokens() {
		if int(id) >= v.size {
			return nil, fmt.Errorf("grammar: token %d is not in the vocabulary of %d tokens", id, v.size)
		}
	}
	c := &Constraint{grammar: g, vocab: v, named: g.Tokens()}
	c.renew()
	return c, nil
}

// Bytes is the memory that it takes at present.
func (c *Constraint) Bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.grammar.Bytes() + c.gen.machine.Bytes() + c.gen.allowed.bytes + 16*c.vocab.Words()
}

func (c *Constraint) renew() {
	g := &generation{machine: c.grammar.NewMachine()}
	g.allowed = newAllowed(c.vocab, g.machine, c.grammar.Limits().Memory)
	c.gen = g
}

// ended is the state after a token that ends the answer.
const ended cfg.Config = -1

// Matcher follows one answer. It is for one goroutine at a time.
type Matcher struct {
	c       *Constraint
	gen     *generation
	states  []cfg.Config // after each token; the first is the start
	scratch []uint64
	err     error
}

// Matcher begins a new answer.
func (c *Constraint) Matcher() *Matcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Matcher{c: c, gen: c.gen, states: []cfg.Config{c.gen.machine.Start()}}
}

// Clone is an independent Matcher in the same state.
func (m *Matcher) Clone() *Matcher {
	return &Matcher{c: m.c, gen: m.gen, states: append([]cfg.Config(nil), m.states...)}
}

func (m *Matcher) now() cfg.Config { return m.states[len(m.states)-1] }

// lock takes the shared tables, and brings the Matcher over to them if they are new.
func (m *Matcher) lock() *cfg.Machine {
	m.c.mu.Lock()
	if m.c.gen.machine.Full() || m.c.gen.machine.Err() != nil {
		m.c.renew()
	}
	if m.gen != m.c.gen {
		old := m.gen.machine
		m.gen = m.c.gen
		at := len(m.states)
		if m.now() == ended {
			at--
		}
		m.gen.machine.Import(old, m.states[:at])
	}
	m.gen.machine.Begin()
	return m.gen.machine
}

// Mask writes which tokens may come next: bit id%64 of mask[id/64], for all words of mask. Ends of the
// answer are among them where the grammar may end. It returns true: tokens are constrained.
func (m *Matcher) Mask(mask []uint64) bool {
	m.lock()
	defer m.c.mu.Unlock()
	m.mask(mask)
	return true
}

func (m *Matcher) mask(mask []uint64) {
	clear(mask)
	if m.now() == ended {
		return
	}
	m.gen.mask(m.now(), m.c.named, mask)
	if m.err = m.gen.machine.Err(); m.err != nil {
		clear(mask)
	}
}

// Err is the limit that the last Mask went over; then the mask is empty.
func (m *Matcher) Err() error { return m.err }

// Forced returns the token that is the only one that may come next, if there is one and it is no end.
func (m *Matcher) Forced() (id int32, ok bool) {
	machine := m.lock()
	defer m.c.mu.Unlock()
	if m.free(machine) {
		return 0, false
	}
	if m.scratch == nil {
		m.scratch = make([]uint64, m.c.vocab.Words())
	}
	m.mask(m.scratch)
	n := 0
	eachBit(m.scratch, func(one int32) { id, n = one, n+1 })
	return id, n == 1 && !m.c.vocab.isEnd(id)
}

// free finds soon that there is more than one token, if each of two bytes that may come is one: there mostly are.
func (m *Matcher) free(machine *cfg.Machine) bool {
	if m.now() == ended {
		return true
	}
	n := 0
	if machine.MayEnd(m.now()) {
		n = len(m.c.vocab.ends)
	}
	for b := 0; b < 256 && n < 2; b++ {
		if m.c.vocab.alone(byte(b), m.c.named) && machine.Step(m.now(), byte(b)) != cfg.Dead {
			n++
		}
	}
	return n >= 2
}

func countBits(mask []uint64) int {
	n := 0
	for _, w := range mask {
		n += bits.OnesCount64(w)
	}
	return n
}

func eachBit(mask []uint64, do func(id int32)) {
	for i, w := range mask {
		for ; w != 0; w &= w - 1 {
			do(int32(64*i + bits.TrailingZeros64(w)))
		}
	}
}

var errEnded = errors.New("grammar: the answer has ended")

// Accept goes on by a token. After an error the state is as before.
func (m *Matcher) Accept(id int32) error {
	machine := m.lock()
	defer m.c.mu.Unlock()
	if m.now() == ended {
		return errEnded
	}
	if _, named := slices.BinarySearch(m.c.named, id); named {
		return m.acceptNamed(machine, id)
	}
	if m.c.vocab.isEnd(id) {
		if !machine.MayEnd(m.now()) {
			return fmt.Errorf("grammar: the answer may not end here (token %d)", id)
		}
		m.states = append(m.states, ended)
		return nil
	}
	text, ok := m.c.vocab.text(id)
	if !ok {
		return fmt.Errorf("grammar: token %d may not come here: it is a control token or stands for no text", id)
	}
	to, n := step(machine, m.now(), text)
	if to == cfg.Dead {
		if err := limitOf(machine); err != nil {
			return err
		}
		return fmt.Errorf("grammar: token %d (%q) may not come here: nothing allowed goes on with byte %d of it", id, text, n)
	}
	m.states = append(m.states, to)
	return nil
}

// acceptNamed goes on by a token that the grammar names, which may end the answer as well.
func (m *Matcher) acceptNamed(machine *cfg.Machine, id int32) error {
	to := machine.StepToken(m.now(), id)
	switch {
	case to != cfg.Dead:
	case limitOf(machine) != nil:
		return limitOf(machine)
	case m.c.vocab.isEnd(id) && machine.MayEnd(m.now()):
		to = ended
	default:
		return fmt.Errorf("grammar: token %d may not come here", id)
	}
	m.states = append(m.states, to)
	return nil
}

// limitOf is the limit that the last operation went over.
func limitOf(machine *cfg.Machine) error {
	if err := machine.Err(); err != nil {
		return err
	}
	return machine.TooDeep()
}

// step goes on by text; if that is Dead, n is the index of the byte that is not allowed.
func step(machine *cfg.Machine, c cfg.Config, text []byte) (to cfg.Config, n int) {
	for i, b := range text {
		if c = machine.Step(c, b); c == cfg.Dead {
			return c, i
		}
	}
	return c, len(text)
}

// Rollback takes back the last n accepted tokens; more than were accepted: all.
func (m *Matcher) Rollback(n int) {
	m.states = m.states[:max(1, len(m.states)-max(n, 0))]
}

// MayEnd says that the answer is complete as it is.
func (m *Matcher) MayEnd() bool {
	if m.now() == ended {
		return true
	}
	machine := m.lock()
	defer m.c.mu.Unlock()
	return machine.MayEnd(m.now())
}

// mask sets the bits of the tokens that may come at c.
func (g *generation) mask(c cfg.Config, named []int32, mask []uint64) {
	g.allowed.mask(c, mask)
	vocab := g.allowed.walk.vocab
	for _, t := range vocab.twins {
		if mask[t.first/64]>>(t.first%64)&1 != 0 {
			setBit(mask, t.id)
		}
	}
	for _, id := range named {
		mask[id/64] &^= 1 << (id % 64)
	}
	g.control = g.machine.Allowed(g.control[:0], c)
	for _, id := range g.control {
		setBit(mask, id)
	}
	if g.machine.MayEnd(c) {
		for _, id := range vocab.ends {
			setBit(mask, id)
		}
	}
}
