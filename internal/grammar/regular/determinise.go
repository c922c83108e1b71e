package regular

import (
	"encoding/binary"
	"slices"
)

// place says what stands before a position of the text.
type place uint8

const (
	atStart   place = iota
	afterWord       // after a character of \w
	afterOther
)

// A thread is a place in the program, with what must hold for the rest of the text.
type thread struct {
	at   int32
	duty int32 // number of a set of duties; 0: none
}

// A duty is a state of an automaton that must accept the rest of the text.
type duty struct{ dfa, state int32 }

// A subset is the subset construction: states of the result are sets of threads.
type subset struct {
	*program
	states   map[string]int32 // of a set of threads
	sets     [][]thread
	targets  map[string]int32 // of the threads before free instructions are passed
	arcs     [][]arc          // by state, in order
	accept   []bool
	duties   [][]duty // by number
	numbers  map[string]int32
	automata []*DFA
	full     []int32 // by automaton: the state from which any text is accepted, or dead
	looks    map[lookKey]int32
	stepped  map[steppedKey]int32
	seen     []int32 // generation in which an instruction was passed without duty
	time     int32
	visited  map[thread]bool
	rows     map[int32]*[256]int32 // of a Run: state + 2, by byte
	useful   []bool                // instructions from which the end is reached, later than at the start
	buffer   []thread
	key      []byte
}

type lookKey struct {
	look  *node
	test  kind
	place place
}

type steppedKey struct {
	duty int32
	c    byte
}

// compile makes the minimal automaton of a program whose text begins at a place.
func (b *Builder) compile(p *program, at place) (*DFA, error) {
	s := newSubset(p, p.useful())
	if _, err := s.enter([]thread{{at: 0}}, at); err != nil {
		return nil, err
	}
	for i := 0; i < len(s.sets); i++ {
		if err := s.expand(i); err != nil {
			return nil, err
		}
	}
	d, err := s.dense()
	if err != nil {
		return nil, err
	}
	return b.minimise(d)
}

func newSubset(p *program, useful []bool) *subset {
	return &subset{program: p, states: map[string]int32{}, targets: map[string]int32{}, numbers: map[string]int32{},
		looks: map[lookKey]int32{}, stepped: map[steppedKey]int32{}, seen: make([]int32, len(p.code)),
		duties: [][]duty{nil}, visited: map[thread]bool{}, useful: useful, rows: map[int32]*[256]int32{}}
}

// dense makes a table, with a column for each run of bytes that no state tells apart.
func (s *subset) dense() (*DFA, error) {
	var cut [257]bool
	for _, arcs := range s.arcs {
		for _, a := range arcs {
			cut[a.lo], cut[int(a.hi)+1] = true, true
		}
	}
	d := &DFA{accept: s.accept, columns: 1}
	for c := 1; c < 256; c++ {
		if cut[c] {
			d.columns++
		}
		d.class[c] = uint8(d.columns - 1)
	}
	if err := s.b.room(len(s.accept), d.columns); err != nil {
		return nil, err
	}
	d.next = make([]int32, len(s.accept)*d.columns)
	for i := range d.next {
		d.next[i] = dead
	}
	for i, arcs := range s.arcs {
		for _, a := range arcs {
			for k := int(d.class[a.lo]); k <= int(d.class[a.hi]); k++ {
				d.next[i*d.columns+k] = a.to
			}
		}
	}
	return d, s.b.step(len(s.accept))
}

// expand finds where the bytes lead from a state.
func (s *subset) expand(state int) error {
	var cut [257]bool
	for _, t := range s.sets[state] {
		for _, a := range s.code[t.at].arcs {
			cut[a.lo], cut[int(a.hi)+1] = true, true
		}
		for _, d := range s.duties[t.duty] {
			s.automata[d.dfa].cuts(&cut)
		}
	}
	for _, w := range words { // after which \b means another thing
		cut[w.lo], cut[w.hi+1] = true, true
	}
	for lo := 0; lo < 256; {
		hi := lo
		for hi < 255 && !cut[hi+1] {
			hi++
		}
		target, err := s.after(state, byte(lo))
		if err != nil {
			return err
		}
		if target >= 0 {
			s.arcs[state] = append(s.arcs[state], arc{byte(lo), byte(hi), target})
		}
		lo = hi + 1
	}
	return nil
}

// after is the state after a byte.
func (s *subset) after(state int, c byte) (int32, error) {
	next := s.buffer[:0]
	for _, t := range s.sets[state] {
		arcs := s.code[t.at].arcs
		i, _ := slices.BinarySearchFunc(arcs, c, func(a arc, c byte) int { return int(a.hi) - int(c) })
		if i == len(arcs) || arcs[i].lo > c || !s.useful[arcs[i].to] {
			continue
		}
		duty, err := s.step(t.duty, c)
		if err != nil {
			return dead, err
		}
		if duty >= 0 {
			next = append(next, thread{arcs[i].to, duty})
		}
	}
	s.buffer = next
	if err := s.b.step(len(s.sets[state])/8 + 1); err != nil {
		return dead, err
	}
	if len(next) == 0 {
		return dead, nil
	}
	if words.has(rune(c)) {
		return s.enter(next, afterWord)
	}
	return s.enter(next, afterOther)
}

func (r runes) has(c rune) bool {
	for _, s := range r {
		if c >= s.lo && c <= s.hi {
			return true
		}
	}
	return false
}

// enter is the state of a set of threads, from which all free instructions are passed first.
func (s *subset) enter(threads []thread, at place) (int32, error) {
	before := append(s.threadsKey(threads), byte(at))
	if state, ok := s.targets[string(before)]; ok {
		return state, nil
	}
	known := string(before)
	s.time++
	clear(s.visited)
	var set []thread
	accepting := false
	for work := slices.Clone(threads); len(work) > 0; {
		t := work[len(work)-1]
		work = work[:len(work)-1]
		if s.passed(t) {
			continue
		}
		in := &s.code[t.at]
		if t.at == s.final && s.dutiesAccept(t.duty) {
			accepting = true
		}
		if len(in.arcs) > 0 {
			set = append(set, t)
		}
		d, err := s.pass(in, t.duty, at)
		if err != nil {
			return dead, err
		}
		if d < 0 {
			continue
		}
		if t.at == s.all && d == 0 {
			work, set = nil, nil
			s.time++
		}
		for _, f := range in.free {
			work = append(work, thread{f, d})
		}
	}
	state, err := s.intern(set, accepting)
	if err == nil {
		s.targets[known] = state
	}
	return state, err
}

// passed notes a thread, and says whether it was there before.
func (s *subset) passed(t thread) bool {
	if t.duty != 0 {
		was := s.visited[t]
		s.visited[t] = true
		return was
	}
	was := s.seen[t.at] == s.time
	s.seen[t.at] = s.time
	return was
}

// intern is the number of a set of threads.
func (s *subset) intern(set []thread, accepting bool) (int32, error) {
	slices.SortFunc(set, func(a, b thread) int {
		if a.at != b.at {
			return int(a.at) - int(b.at)
		}
		return int(a.duty) - int(b.duty)
	})
	key := s.threadsKey(set)
	if accepting {
		key = append(key, '!')
	}
	if state, ok := s.states[string(key)]; ok {
		return state, nil
	}
	state := int32(len(s.sets))
	if err := s.b.room(int(state)+1, 8); err != nil {
		return dead, err
	}
	if err := s.b.step(len(set) + 8); err != nil {
		return dead, err
	}
	s.states[string(key)] = state
	s.sets = append(s.sets, set)
	s.accept = append(s.accept, accepting)
	s.arcs = append(s.arcs, nil)
	return state, nil
}

// threadsKey is good until the next call.
func (s *subset) threadsKey(set []thread) []byte {
	s.key = s.key[:0]
	for _, t := range set {
		s.key = binary.LittleEndian.AppendUint32(s.key, uint32(t.at))
		s.key = binary.LittleEndian.AppendUint32(s.key, uint32(t.duty))
	}
	return s.key
}
