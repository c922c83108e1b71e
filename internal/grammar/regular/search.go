package regular

import (
	"encoding/binary"
	"slices"
)

// mostCompared is how many states inclusion compares with each other.
const mostCompared = 1000

// searchAhead is the language of the texts in which n, which looks ahead, matches somewhere. A match may begin at
// any character, so that the subset construction would keep what each beginning still has to see. Here a match
// that has begun is a state of the automaton of n; of several, those are dropped whose texts another one accepts
// too: as a rule one is left, where (?=.*a)(?=.*b) would give thousands.
func (b *Builder) searchAhead(n *node) (*DFA, error) {
	s := &searcher{b: b, numbers: map[string]int32{}}
	if err := s.parts(n); err != nil {
		return nil, err
	}
	if err := s.include(); err != nil {
		return nil, err
	}
	s.number([]int32{s.begin[atStart]}, 0)
	for i := 0; i < len(s.states); i++ {
		s.out.accept = append(s.out.accept, slices.ContainsFunc(s.states[i].set, func(m int32) bool { return s.all.accept[m] }))
		for _, c := range s.first {
			s.out.next = append(s.out.next, s.after(s.states[i], c))
		}
		if err := b.room(len(s.states), len(s.first)); err != nil {
			return nil, err
		}
		if err := b.step(len(s.first) + 4); err != nil {
			return nil, err
		}
	}
	return b.minimise(s.out)
}

// A searcher is the state of searchAhead.
type searcher struct {
	b        *Builder
	all      *DFA     // those of n at each place, side by side
	begin    [3]int32 // by place, in all
	text     *DFA
	out      *DFA
	first    []byte
	included []bool // a·states + b: all texts from a are texts from b; nil: not known
	states   []searched
	numbers  map[string]int32
}

// A searched is a state of the result: of the matches that have begun, and of the character.
type searched struct {
	set  []int32
	text int32
}

// parts compiles n for the places at which it may begin.
func (s *searcher) parts(n *node) (err error) {
	if s.text, err = s.b.Text(); err != nil {
		return err
	}
	var kept []*DFA
	var offsets []int32
	total := int32(0)
	for _, at := range []place{atStart, afterWord, afterOther} {
		d, err := s.b.compileNode(sequence(n, anything()), at)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(kept, d.Equal)
		if i < 0 {
			i = len(kept)
			kept, offsets = append(kept, d), append(offsets, total)
			total += int32(d.States())
		}
		s.begin[at] = offsets[i]
	}
	s.columns(kept)
	if err := s.b.room(int(total), len(s.first)); err != nil {
		return err
	}
	s.all = &DFA{class: s.out.class, columns: s.out.columns}
	for i, d := range kept {
		for state := range d.States() {
			s.all.accept = append(s.all.accept, d.accept[state])
			for _, c := range s.first {
				to := int32(d.Next(state, c))
				if to >= 0 {
					to += offsets[i]
				}
				s.all.next = append(s.all.next, to)
			}
		}
	}
	return nil
}

// columns tells apart what any automaton does, and the characters of \w.
func (s *searcher) columns(kept []*DFA) {
	s.out = &DFA{columns: 2}
	for c := range s.out.class {
		if words.has(rune(c)) {
			s.out.class[c] = 1
		}
	}
	for _, d := range append(kept, s.text) {
		joint := &DFA{}
		s.first = joint.joint(s.out, d)
		s.out = joint
	}
}

// include finds which states accept all texts that another one does: all pairs but those that a text tells
// apart, from its end on.
func (s *searcher) include() error {
	n := s.all.States()
	if n > mostCompared {
		return nil
	}
	k := s.all.columns
	back := s.back()
	s.included = make([]bool, n*n)
	for i := range s.included {
		s.included[i] = true
	}
	var work [][2]int32
	apart := func(a, b int32) {
		if s.included[int(a)*n+int(b)] {
			s.included[int(a)*n+int(b)] = false
			work = append(work, [2]int32{a, b})
		}
	}
	for a := range int32(n) {
		for b := range int32(n) {
			if s.all.accept[a] && !s.all.accept[b] || s.goesBeyond(a, b) {
				apart(a, b)
			}
		}
	}
	steps := n * n * k / 4
	for len(work) > 0 {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		for c := range k {
			for _, a := range back[int(p[0])*k+c] {
				for _, b := range back[int(p[1])*k+c] {
					apart(a, b)
					steps++
				}
			}
		}
	}
	return s.b.step(steps / 4)
}

// back has the states that lead to another one, by that·columns + column.
func (s *searcher) back() [][]int32 {
	k := s.all.columns
	back := make([][]int32, s.all.States()*k)
	for i := range s.all.States() {
		for c, to := range s.all.row(i) {
			if to >= 0 {
				back[int(to)*k+c] = append(back[int(to)*k+c], int32(i))
			}
		}
	}
	return back
}

// goesBeyond says whether a goes on with a byte with which b does not. No state is without a text.
func (s *searcher) goesBeyond(a, b int32) bool {
	for c, to := range s.all.row(int(a)) {
		if to >= 0 && s.all.row(int(b))[c] < 0 {
			return true
		}
	}
	return false
}

// after is the state after a byte; a match may begin behind each character.
func (s *searcher) after(state searched, c byte) int32 {
	text := int32(s.text.Next(int(state.text), c))
	if text < 0 {
		return dead
	}
	var set []int32
	for _, m := range state.set {
		if to := s.all.Next(int(m), c); to >= 0 {
			set = append(set, int32(to))
		}
	}
	if s.text.accept[text] {
		at := afterOther
		if words.has(rune(c)) {
			at = afterWord
		}
		set = append(set, s.begin[at])
	}
	return s.number(set, text)
}

// number is the state of a set of matches, less those that others include. Without any, one may begin later.
func (s *searcher) number(set []int32, text int32) int32 {
	slices.Sort(set)
	set = slices.Compact(set)
	if n := s.all.States(); s.included != nil {
		var kept []int32
		for i, a := range set {
			drop := false
			for j, b := range set {
				if i != j && s.included[int(a)*n+int(b)] && (!s.included[int(b)*n+int(a)] || j < i) {
					drop = true
					break
				}
			}
			if !drop {
				kept = append(kept, a)
			}
		}
		set = kept
	}
	key := binary.LittleEndian.AppendUint32(nil, uint32(text))
	for _, m := range set {
		key = binary.LittleEndian.AppendUint32(key, uint32(m))
	}
	number, ok := s.numbers[string(key)]
	if !ok {
		number = int32(len(s.states))
		s.numbers[string(key)] = number
		s.states = append(s.states, searched{set, text})
	}
	return number
}
