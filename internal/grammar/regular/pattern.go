package regular

import "slices"

// A Pattern matches texts without an automaton of all its states: it finds those that a text needs, as the
// text comes. It is for patterns whose automata are too large; its work per byte is larger. It is immutable.
type Pattern struct {
	program *program
	useful  []bool
	looks   *subset // has the automata of all look-aheads, for all places
}

// Pattern reads a regular expression as Regexp does. Its size counts against the limit of states, not that of
// its automaton.
func (b *Builder) Pattern(pattern string, search bool) (*Pattern, error) {
	n, err := read(pattern)
	if err != nil {
		return nil, err
	}
	p, err := b.whole(n, search)
	if err != nil {
		return nil, err
	}
	looks := newSubset(p, p.useful())
	for i := range p.code {
		in := &p.code[i]
		if in.test == kindSequence || in.test == kindStart {
			continue
		}
		for _, at := range []place{atStart, afterWord, afterOther} {
			if _, err := looks.look(in, at); err != nil {
				return nil, err
			}
		}
	}
	return &Pattern{p, looks.useful, looks}, nil
}

// A Run follows texts through a Pattern, one after the other.
type Run struct {
	s     *subset
	state int32
	err   error
}

// mostKept is how many states a Run remembers.
const mostKept = 4096

// Run begins a text.
func (p *Pattern) Run() *Run {
	own := *p.program
	own.b = NewBuilder(Limits{Steps: 1 << 60})
	r := &Run{s: newSubset(&own, p.useful)}
	r.s.automata, r.s.full, r.s.looks = p.looks.automata, p.looks.full, p.looks.looks // all are there: none is added
	r.Begin()
	return r
}

// Begin begins another text; what the last one has shown is kept.
func (r *Run) Begin() { r.state, r.err = r.s.enter([]thread{{at: 0}}, atStart) }

// Next takes a byte; false: no text goes on so.
func (r *Run) Next(c byte) bool {
	if r.err != nil || r.state < 0 {
		return false
	}
	if len(r.s.sets) > mostKept {
		r.forget()
	}
	r.state, r.err = r.s.cached(r.state, c)
	return r.err == nil && r.state >= 0 && (len(r.s.sets[r.state]) > 0 || r.s.accept[r.state])
}

// cached is after, which it asks once for each byte.
func (s *subset) cached(state int32, c byte) (int32, error) {
	row := s.rows[state]
	if row == nil {
		row = new([256]int32)
		s.rows[state] = row
	}
	if row[c] == 0 {
		next, err := s.after(int(state), c)
		if err != nil {
			return dead, err
		}
		row[c] = next + 2 // 1: dead
	}
	return row[c] - 2, nil
}

// Accepting says whether the text so far matches.
func (r *Run) Accepting() bool { return r.err == nil && r.state >= 0 && r.s.accept[r.state] }

// forget drops all states but the present one.
func (r *Run) forget() {
	s := r.s
	set, accepting := slices.Clone(s.sets[r.state]), s.accept[r.state]
	clear(s.states)
	clear(s.targets)
	clear(s.rows)
	s.sets, s.arcs, s.accept = nil, nil, nil
	r.state, r.err = s.intern(set, accepting)
}

// Match says whether a whole text, from its beginning, matches.
func (r *Run) Match(text string) bool {
	r.Begin()
	for i := range len(text) {
		if !r.Next(text[i]) {
			return false
		}
	}
	return r.Accepting()
}
