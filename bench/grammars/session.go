package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
	"github.com/spillway/spillway/internal/grammar/schema/accept"
	"github.com/spillway/spillway/internal/tokenizer"
	"github.com/spillway/spillway/internal/vfs"
)

// session is a vocabulary, and schemas by slot: one whose masks are compared, others of which texts alone are asked.
type session struct {
	vocab   *grammar.Vocabulary
	texts   [][]byte
	slots   map[int]*slot
	matcher *grammar.Matcher
	sofar   []byte
}

type slot struct {
	grammar *cfg.Grammar
	machine *cfg.Machine
	program *accept.Program
}

func (s *session) answer(q *request, a *answer) (err error) {
	switch q.Op {
	case "load":
		return s.load(q, a)
	case "compile":
		return s.compile(q)
	case "begin":
		return s.begin(q)
	case "mask":
		mask := make([]uint64, s.vocab.Words())
		s.matcher.Mask(mask)
		a.Mask, err = binary.Append(nil, binary.LittleEndian, mask)
		return errors.Join(err, s.matcher.Err())
	case "accept":
		s.sofar = append(s.sofar, s.texts[q.ID]...)
		return s.matcher.Accept(q.ID)
	}
	one := s.slots[q.Slot]
	if one == nil {
		return fmt.Errorf("no schema in slot %d", q.Slot)
	}
	if one.machine.Full() {
		one.machine = one.grammar.NewMachine()
	}
	one.machine.Begin()
	switch q.Op {
	case "refused":
		return s.refused(one.machine, q, a)
	case "text":
		at, n := step(one.machine, one.machine.Start(), q.Text)
		a.At, a.Ends = []int{n}, at != cfg.Dead && one.machine.MayEnd(at)
	case "write":
		a.Text, a.Ends = finish(one.machine, q)
	case "check":
		return one.program.Check(q.Text)
	default:
		return fmt.Errorf("unknown op %q", q.Op)
	}
	return one.machine.Err()
}

func (s *session) load(q *request, a *answer) error {
	tok, err := tokenizer.LoadPath(vfs.OS(), q.Dir, nil)
	if err != nil {
		return err
	}
	end, ok := tok.ID(q.End)
	if !ok {
		return fmt.Errorf("no token %q", q.End)
	}
	if s.vocab, err = grammar.NewVocabulary(tok, []int32{end}, nil); err != nil {
		return err
	}
	s.slots = map[int]*slot{}
	s.texts = make([][]byte, tok.Size())
	for id := range s.texts {
		if id := int32(id); !s.vocab.Control(id) {
			if s.texts[id], err = tok.Bytes(id); err != nil {
				s.texts[id] = nil
			}
		}
	}
	a.Tokens, a.End = s.texts, end
	return nil
}

func (s *session) compile(q *request) error {
	delete(s.slots, q.Slot)
	g, err := grammar.CompileGrammar(grammar.Source{Kind: grammar.JSONSchema, Text: q.Schema}, nil, cfg.Limits{})
	if err != nil {
		return err
	}
	doc, err := schema.Parse([]byte(q.Schema), nil)
	if err != nil {
		return err
	}
	program, err := accept.Compile(doc, accept.Options{})
	if err != nil {
		return err
	}
	s.slots[q.Slot] = &slot{g, g.NewMachine(), program}
	return nil
}

func (s *session) begin(q *request) error {
	one := s.slots[q.Slot]
	if one == nil {
		return fmt.Errorf("no schema in slot %d", q.Slot)
	}
	c, err := grammar.NewConstraint(one.grammar, s.vocab)
	if err != nil {
		return err
	}
	s.matcher, s.sofar = c.Matcher(), nil
	return nil
}

// refused finds the byte of each token that may not come after what was accepted.
func (s *session) refused(m *cfg.Machine, q *request, a *answer) error {
	at, n := step(m, m.Start(), s.sofar)
	if n < len(s.sofar) {
		return fmt.Errorf("%q was accepted, byte %d is refused", s.sofar, n)
	}
	for _, id := range q.IDs {
		_, n := step(m, at, s.texts[id])
		a.At = append(a.At, n)
	}
	return nil
}

func step(m *cfg.Machine, c cfg.Config, text []byte) (cfg.Config, int) {
	for i, b := range text {
		if c = m.Step(c, b); c == cfg.Dead {
			return c, i
		}
	}
	return c, len(text)
}

// closing is the order of preference of bytes that bring JSON to its end.
const closing = "}]\"0123456789aeltrufsn:,-."

// finish goes on behind q.Text at random until the grammar may end; false if it did not within 4,000 bytes.
func finish(m *cfg.Machine, q *request) ([]byte, bool) {
	at, n := step(m, m.Start(), q.Text)
	if n < len(q.Text) {
		return nil, false
	}
	out := bytes.Clone(q.Text)
	r := rand.New(rand.NewPCG(q.Seed, 1))
	for len(out) < len(q.Text)+4000 {
		var next []byte
		for b := range 256 {
			if m.Step(at, byte(b)) != cfg.Dead {
				next = append(next, byte(b))
			}
		}
		soon := len(out) >= q.Soft
		if m.MayEnd(at) && (len(next) == 0 || soon || r.IntN(4) == 0) {
			return out, true
		}
		if len(next) == 0 {
			return out, false
		}
		b := choose(r, next, soon)
		out, at = append(out, b), m.Step(at, b)
	}
	return out, false
}

func choose(r *rand.Rand, next []byte, soon bool) byte {
	if soon && r.IntN(20) > 0 {
		if bytes.IndexByte(next, '"') >= 0 && r.IntN(2) == 0 {
			return '"'
		}
		for i := range len(closing) {
			if bytes.IndexByte(next, closing[i]) >= 0 {
				return closing[i]
			}
		}
	}
	var plain []byte
	for _, b := range next {
		if b >= ' ' && b < 0x7f && b != '\\' {
			plain = append(plain, b)
		}
	}
	if len(plain) > 0 && r.IntN(16) > 0 {
		return plain[r.IntN(len(plain))]
	}
	return next[r.IntN(len(next))]
}
