package regular

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// pass is the number of the duties of a thread behind an instruction, dead if its test fails.
func (s *subset) pass(in *instruction, duties int32, at place) (int32, error) {
	switch in.test {
	case kindStart:
		if at != atStart {
			return dead, nil
		}
	case kindEnd, kindBoundary, kindNotBoundary, kindAhead:
		number, err := s.look(in, at)
		if err != nil {
			return dead, err
		}
		return s.with(duties, duty{number, 0}), nil
	}
	return duties, nil
}

// look is the automaton that must accept what follows.
func (s *subset) look(in *instruction, at place) (int32, error) {
	key := lookKey{in.look, in.test, at}
	if number, ok := s.looks[key]; ok {
		return number, nil
	}
	d, err := s.b.lookDFA(in, at)
	if err != nil {
		return dead, err
	}
	number := int32(len(s.automata))
	s.automata = append(s.automata, d)
	s.full = append(s.full, s.b.fullState(d))
	s.looks[key] = number
	return number, nil
}

func (b *Builder) lookDFA(in *instruction, at place) (*DFA, error) {
	switch in.test {
	case kindEnd:
		return b.compileNode(sequence(), atStart)
	case kindBoundary, kindNotBoundary:
		word := sequence(setNode(words), anything())
		if (in.test == kindBoundary) != (at == afterWord) {
			return b.compileNode(word, atStart)
		}
		return b.compileNode(either(sequence(), sequence(setNode(words.not()), anything())), atStart)
	}
	d, err := b.compileNode(sequence(in.look.subs[0], anything()), at)
	if err != nil || !in.look.negative {
		return d, err
	}
	return b.Complement(d)
}

// fullState is the state from which a minimal automaton accepts any text.
func (b *Builder) fullState(d *DFA) int32 {
	text, err := b.Text()
	if err != nil {
		return dead
	}
	for s, a := range d.accept {
		if a && d.sameFrom(s, text) {
			return int32(s)
		}
	}
	return dead
}

// sameFrom says whether d goes on from a state as e does from its start.
func (d *DFA) sameFrom(state int, e *DFA) bool {
	matched := map[int]int{0: state}
	for work := []int{0}; len(work) > 0; {
		t := work[len(work)-1]
		work = work[:len(work)-1]
		if d.accept[matched[t]] != e.accept[t] {
			return false
		}
		for c := range 256 {
			a, b := d.Next(matched[t], byte(c)), e.Next(t, byte(c))
			if (a < 0) != (b < 0) {
				return false
			}
			if b < 0 {
				continue
			}
			if known, ok := matched[b]; !ok {
				matched[b] = a
				work = append(work, b)
			} else if known != a {
				return false
			}
		}
	}
	return true
}

// with adds a duty to a set of them. A duty that nothing can fulfil gives dead.
func (s *subset) with(duties int32, d duty) int32 {
	if s.automata[d.dfa].Empty() {
		return dead
	}
	if s.full[d.dfa] == d.state || slices.Contains(s.duties[duties], d) {
		return duties
	}
	return s.number(append(slices.Clone(s.duties[duties]), d))
}

func (s *subset) number(duties []duty) int32 {
	if len(duties) == 0 {
		return 0
	}
	slices.SortFunc(duties, func(a, b duty) int { return cmp.Or(cmp.Compare(a.dfa, b.dfa), cmp.Compare(a.state, b.state)) })
	duties = slices.Compact(duties)
	var key []byte
	for _, d := range duties {
		key = binary.LittleEndian.AppendUint32(key, uint32(d.dfa))
		key = binary.LittleEndian.AppendUint32(key, uint32(d.state))
	}
	n, ok := s.numbers[string(key)]
	if !ok {
		n = int32(len(s.duties))
		s.numbers[string(key)] = n
		s.duties = append(s.duties, duties)
	}
	return n
}

// step is the number of the duties after a byte, dead if one cannot be fulfilled any more.
func (s *subset) step(duties int32, c byte) (int32, error) {
	if duties == 0 {
		return 0, nil
	}
	key := steppedKey{duties, c}
	if n, ok := s.stepped[key]; ok {
		return n, nil
	}
	n := int32(dead)
	var next []duty
	for _, d := range s.duties[duties] {
		to := s.automata[d.dfa].Next(int(d.state), c)
		if to < 0 {
			s.stepped[key] = dead
			return dead, nil
		}
		if int32(to) != s.full[d.dfa] {
			next = append(next, duty{d.dfa, int32(to)})
		}
	}
	n = s.number(next)
	s.stepped[key] = n
	return n, s.b.step(len(next) + 1)
}

func (s *subset) dutiesAccept(duties int32) bool {
	for _, d := range s.duties[duties] {
		if !s.automata[d.dfa].accept[d.state] {
			return false
		}
	}
	return true
}
