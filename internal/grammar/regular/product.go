package regular

// Intersect is the language of the texts in all languages; of none: all texts.
func (b *Builder) Intersect(languages ...*DFA) (*DFA, error) {
	if len(languages) == 0 {
		return b.Text()
	}
	d := languages[0]
	for _, e := range languages[1:] {
		var err error
		if d, err = b.product(d, e, false); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Difference is the language of the texts in d that are not in e.
func (b *Builder) Difference(d, e *DFA) (*DFA, error) { return b.product(d, e, true) }

// Complement is the language of the texts, valid UTF-8 all, that are not in d.
func (b *Builder) Complement(d *DFA) (*DFA, error) {
	text, err := b.Text()
	if err != nil {
		return nil, err
	}
	return b.product(text, d, true)
}

// A pair is a state of two automata that run side by side; the second may be dead.
type pair struct{ d, e int32 }

// product runs two automata side by side: texts of d that are in e, or that are not.
func (b *Builder) product(d, e *DFA, without bool) (*DFA, error) {
	out := &DFA{}
	first := out.joint(d, e)
	numbers := map[pair]int32{{0, 0}: 0}
	pairs := []pair{{0, 0}}
	for i := 0; i < len(pairs); i++ {
		p := pairs[i]
		inE := p.e >= 0 && e.accept[p.e]
		out.accept = append(out.accept, d.accept[p.d] && inE != without)
		for _, c := range first {
			to := pair{int32(d.Next(int(p.d), c)), dead}
			if p.e >= 0 {
				to.e = int32(e.Next(int(p.e), c))
			}
			if to.d < 0 || to.e < 0 && !without {
				out.next = append(out.next, dead)
				continue
			}
			n, ok := numbers[to]
			if !ok {
				n = int32(len(pairs))
				numbers[to] = n
				pairs = append(pairs, to)
			}
			out.next = append(out.next, n)
		}
		if err := b.room(len(pairs), out.columns); err != nil {
			return nil, err
		}
		if err := b.step(len(first) + 4); err != nil {
			return nil, err
		}
	}
	return b.minimise(out)
}

// joint gives out the columns that tell apart what d or e tells apart, and a byte of each.
func (out *DFA) joint(d, e *DFA) (first []byte) {
	known := map[[2]uint8]uint8{}
	for c := range 256 {
		key := [2]uint8{d.class[c], e.class[c]}
		column, ok := known[key]
		if !ok {
			column = uint8(len(first))
			known[key] = column
			first = append(first, byte(c))
		}
		out.class[c] = column
	}
	out.columns = len(first)
	return first
}

// Bounded is the language of the texts of d that have least to most characters; most < 0: no end.
func (b *Builder) Bounded(d *DFA, least, most int) (*DFA, error) {
	layers := max(least, most) + 1
	if most < 0 || layers > maxBoundedCells/len(d.accept) {
		length, err := b.Length(least, most)
		if err != nil {
			return nil, err
		}
		return b.Intersect(d, length)
	}
	return b.count(d, least, most)
}

// maxBoundedCells is the most pairs of a state and a count that are numbered in a table.
const maxBoundedCells = 1 << 20

// count runs an automaton beside a count of characters, of which all bytes but continuations begin one.
func (b *Builder) count(d *DFA, least, most int) (*DFA, error) {
	out, characters := &DFA{}, continuationColumns()
	first := out.joint(d, characters)
	numbers := make([]int32, len(d.accept)*(most+1)) // of pair{state, count}, +1
	pairs := []pair{{0, 0}}
	numbers[0] = 1
	for i := 0; i < len(pairs); i++ {
		p := pairs[i]
		out.accept = append(out.accept, d.accept[p.d] && int(p.e) >= least)
		for _, c := range first {
			to := pair{int32(d.Next(int(p.d), c)), p.e + 1 - int32(characters.class[c])}
			if to.d < 0 || int(to.e) > most {
				out.next = append(out.next, dead)
				continue
			}
			n := &numbers[int(to.e)*len(d.accept)+int(to.d)]
			if *n == 0 {
				pairs = append(pairs, to)
				*n = int32(len(pairs))
			}
			out.next = append(out.next, *n-1)
		}
		if err := b.room(len(pairs), out.columns); err != nil {
			return nil, err
		}
		if err := b.step(len(first) + 4); err != nil {
			return nil, err
		}
	}
	return b.minimise(out)
}

// continuationColumns tells the continuation bytes of characters, class 1, from others.
func continuationColumns() *DFA {
	d := &DFA{columns: 2}
	for c := 0x80; c < 0xC0; c++ {
		d.class[c] = 1
	}
	return d
}
