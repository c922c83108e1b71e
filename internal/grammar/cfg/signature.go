package cfg

import (
	"encoding/binary"
	"math"
)

// Signature describes what a part's Config does, whatever the grammar around it: parts with one signature
// allow the same texts and leave at the same places. It is false if that takes more than a number of states.
func (m *Machine) Signature(dst []byte, c Config, most int) ([]byte, bool) {
	if m.signed == nil {
		m.signed = make([]uint16, len(m.g.states))
	}
	s := signer{g: m.g, ids: m.signed, out: dst}
	defer s.forget()
	for _, t := range m.threadsOf(c) {
		s.num(s.id(t.state))
		for _, e := range m.elemsOf(t.stack) {
			s.elem(e)
		}
	}
	most = min(most, math.MaxUint16)
	for i := 0; i < len(s.order) && len(s.order) <= most; i++ {
		s.state(s.order[i])
	}
	return s.out, len(s.order) <= most
}

type signer struct {
	g     *Grammar
	ids   []uint16 // by state, +1; of so many that they begin anew there is no signature
	order []int32
	out   []byte
}

func (s *signer) num(v uint32) { s.out = binary.AppendUvarint(s.out, uint64(v)) }

func (s *signer) id(q int32) uint32 {
	if s.ids[q] == 0 {
		s.order = append(s.order, q)
		s.ids[q] = uint16(len(s.order))
	}
	return uint32(s.ids[q]) - 1
}

// forget clears ids for the next one.
func (s *signer) forget() {
	for _, q := range s.order {
		s.ids[q] = 0
	}
}

// elem describes a return to the bottom, or to a counter just above it.
func (s *signer) elem(e elem) {
	switch {
	case e.ret < 0:
		s.out = append(s.out, 'b')
	case e.up == counted:
		s.out = append(s.out, 'c')
		s.num(s.id(s.g.frames[s.g.counters[s.g.states[e.ret].count].body].start))
	default:
		s.out = append(s.out, 'r')
		s.num(s.id(e.ret))
		s.num(uint32(e.count))
	}
}

func (s *signer) state(q int32) {
	st := &s.g.states[q]
	s.out = append(s.out, '\n')
	if st.final {
		s.out = append(s.out, 'f')
	}
	if st.count >= 0 {
		k := s.g.counters[st.count]
		s.out = append(s.out, 'k')
		s.num(uint32(k.min))
		s.num(uint32(k.max))
		s.num(s.id(s.g.frames[k.body].start))
	}
	for _, mv := range s.g.bytes[st.bytes[0]:st.bytes[1]] {
		s.out = append(s.out, 'm', s.g.firstOf[mv.lo], s.g.lastOf[mv.hi])
		s.num(s.id(mv.to))
	}
	for _, mv := range s.g.calls[st.calls[0]:st.calls[1]] {
		s.out = append(s.out, 'p')
		s.num(s.id(s.g.frames[mv.frame].start))
		s.num(s.id(mv.ret))
	}
}
