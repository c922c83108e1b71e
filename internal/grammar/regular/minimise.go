package regular

import "slices"

// minimise gives the minimal automaton of a table: states that are not reached or cannot accept are
// removed, equal ones joined, then states and columns are put in a fixed order.
func (b *Builder) minimise(d *DFA) (*DFA, error) {
	live := d.live()
	if !live[0] {
		return &DFA{columns: 1, next: []int32{dead}, accept: []bool{false}}, nil
	}
	m := newRefinement(d, live)
	if err := b.step(len(m.tail) + len(live)); err != nil {
		return nil, err
	}
	m.refine()
	return canonical(d, live, m), nil
}

// live marks the states that are reached and can accept.
func (d *DFA) live() []bool {
	reached := make([]bool, len(d.accept))
	reached[0] = true
	for work := []int32{0}; len(work) > 0; {
		s := work[len(work)-1]
		work = work[:len(work)-1]
		for _, t := range d.row(int(s)) {
			if t >= 0 && !reached[t] {
				reached[t] = true
				work = append(work, t)
			}
		}
	}
	back, at := d.sources()
	live := make([]bool, len(d.accept))
	var work []int32
	for s, a := range d.accept {
		if a && reached[s] {
			live[s], work = true, append(work, int32(s))
		}
	}
	for len(work) > 0 {
		s := work[len(work)-1]
		work = work[:len(work)-1]
		for _, f := range back[at[s]:at[s+1]] {
			if reached[f] && !live[f] {
				live[f], work = true, append(work, f)
			}
		}
	}
	return live
}

// sources has the states that lead to state s at [at[s]:at[s+1]], one that does by several columns in a row once.
func (d *DFA) sources() (from, at []int32) {
	at = make([]int32, len(d.accept)+1)
	each := func(f func(s, t int32)) {
		for s := range int32(len(d.accept)) {
			last := int32(dead)
			for _, t := range d.row(int(s)) {
				if t >= 0 && t != last {
					f(s, t)
				}
				last = t
			}
		}
	}
	each(func(_, t int32) { at[t]++ })
	for i := range len(d.accept) {
		at[i+1] += at[i]
	}
	from = make([]int32, at[len(d.accept)])
	each(func(s, t int32) {
		at[t]--
		from[at[t]] = s
	})
	return from, at
}

func (d *DFA) row(state int) []int32 { return d.next[state*d.columns : (state+1)*d.columns] }

// A refinement is the state of the algorithm of Valmari and Lehtinen (Efficient minimization of DFAs with
// partial transition functions, 2008): two partitions, of states and of transitions, that split each other.
type refinement struct {
	states, arcs     partition
	tail, head, mark []int32 // mark: column of an arc
	into, at         []int32 // arcs by head: into[at[s]:at[s+1]]
}

// A partition of 0 … n-1: elements in order of their sets, the first marked ones of each set first.
type partition struct {
	elements, place, set []int32 // place of an element in elements; set of an element
	begin, end           []int32 // of a set in elements
	marked               []int32 // how many of a set are marked
	touched              []int32 // sets with marked elements
}

func newPartition(n int) partition {
	p := partition{elements: make([]int32, n), place: make([]int32, n), set: make([]int32, n)}
	for i := range n {
		p.elements[i], p.place[i] = int32(i), int32(i)
	}
	if n > 0 {
		p.begin, p.end, p.marked = []int32{0}, []int32{int32(n)}, []int32{0}
	}
	return p
}

func (p *partition) markElement(e int32) {
	s, i := p.set[e], p.place[e]
	j := p.begin[s] + p.marked[s]
	if i < j {
		return
	}
	other := p.elements[j]
	p.elements[i], p.place[other] = other, i
	p.elements[j], p.place[e] = e, j
	if p.marked[s] == 0 {
		p.touched = append(p.touched, s)
	}
	p.marked[s]++
}

// split parts each touched set into its marked and its other elements; the smaller part is the new set.
func (p *partition) split() {
	for _, s := range p.touched {
		j := p.begin[s] + p.marked[s]
		if j == p.end[s] {
			p.marked[s] = 0
			continue
		}
		z := int32(len(p.begin))
		if p.marked[s] <= p.end[s]-j {
			p.begin, p.end = append(p.begin, p.begin[s]), append(p.end, j)
			p.begin[s] = j
		} else {
			p.begin, p.end = append(p.begin, j), append(p.end, p.end[s])
			p.end[s] = j
		}
		for i := p.begin[z]; i < p.end[z]; i++ {
			p.set[p.elements[i]] = z
		}
		p.marked[s] = 0
		p.marked = append(p.marked, 0)
	}
	p.touched = p.touched[:0]
}

func newRefinement(d *DFA, live []bool) *refinement {
	m := &refinement{states: newPartition(len(live))}
	n := 0
	for _, t := range d.next {
		if t >= 0 {
			n++
		}
	}
	room := make([]int32, 3*n)
	m.tail, m.head, m.mark = room[:0:n], room[n:n:2*n], room[2*n:2*n]
	for s, ok := range live {
		if !ok {
			continue
		}
		for c, t := range d.row(s) {
			if t >= 0 && live[t] {
				m.tail, m.head, m.mark = append(m.tail, int32(s)), append(m.head, t), append(m.mark, int32(c))
			}
		}
	}
	for s, a := range d.accept {
		if a && live[s] {
			m.states.markElement(int32(s))
		}
	}
	m.states.split()
	// Dead states have no arcs; they stay with the states that do not accept, which matters to nobody.
	m.arcs = m.byColumn(d.columns)
	m.at = make([]int32, len(live)+1)
	for _, h := range m.head {
		m.at[h+1]++
	}
	for i := range live {
		m.at[i+1] += m.at[i]
	}
	m.into = make([]int32, len(m.head))
	fill := slices.Clone(m.at)
	for a, h := range m.head {
		m.into[fill[h]] = int32(a)
		fill[h]++
	}
	return m
}

// byColumn is the partition of the arcs by their columns.
func (m *refinement) byColumn(columns int) partition {
	n := len(m.mark)
	p := partition{elements: make([]int32, n), place: make([]int32, n), set: make([]int32, n)}
	count := make([]int32, columns+1)
	for _, c := range m.mark {
		count[c+1]++
	}
	sets := make([]int32, columns)
	for c := range columns {
		if count[c+1] > 0 {
			sets[c] = int32(len(p.begin))
			p.begin = append(p.begin, count[c])
			p.end = append(p.end, count[c]+count[c+1])
			p.marked = append(p.marked, 0)
		}
		count[c+1] += count[c]
	}
	for a, c := range m.mark {
		i := count[c]
		count[c]++
		p.elements[i], p.place[a], p.set[a] = int32(a), i, sets[c]
	}
	return p
}

func (m *refinement) refine() {
	for b, c := 1, 0; c < len(m.arcs.begin); {
		for i := m.arcs.begin[c]; i < m.arcs.end[c]; i++ {
			m.states.markElement(m.tail[m.arcs.elements[i]])
		}
		m.states.split()
		c++
		for ; b < len(m.states.begin); b++ {
			for i := m.states.begin[b]; i < m.states.end[b]; i++ {
				s := m.states.elements[i]
				for _, a := range m.into[m.at[s]:m.at[s+1]] {
					m.arcs.markElement(a)
				}
			}
			m.arcs.split()
		}
	}
}

// canonical numbers the joined states in the order in which bytes reach them and joins equal columns.
func canonical(d *DFA, live []bool, m *refinement) *DFA {
	number := make([]int32, len(m.states.begin))
	for i := range number {
		number[i] = dead
	}
	first := d.first()
	slices.SortFunc(first, func(a, b byte) int { return int(a) - int(b) })
	order := []int32{0}
	number[m.states.set[0]] = 0
	target := func(s int32, c byte) int32 {
		t := d.next[int(s)*d.columns+int(d.class[c])]
		if t < 0 || !live[t] {
			return dead
		}
		return t
	}
	for i := 0; i < len(order); i++ {
		for _, c := range first {
			if t := target(order[i], c); t >= 0 && number[m.states.set[t]] < 0 {
				number[m.states.set[t]] = int32(len(order))
				order = append(order, t)
			}
		}
	}
	columns := make([][]int32, len(first))
	for j, c := range first {
		columns[j] = make([]int32, len(order))
		for i, s := range order {
			columns[j][i] = dead
			if t := target(s, c); t >= 0 {
				columns[j][i] = number[m.states.set[t]]
			}
		}
	}
	out := &DFA{accept: make([]bool, len(order))}
	for i, s := range order {
		out.accept[i] = d.accept[s]
	}
	out.fill(d, columns, first)
	return out
}

// fill makes classes and table of columns, those of first in d.
func (out *DFA) fill(d *DFA, columns [][]int32, first []byte) {
	seen := map[uint64][]int{} // hash → distinct columns
	var distinct []int
	merged := make([]uint8, d.columns) // column of d → column of out
	for j, column := range columns {
		h, k := hash(column), -1
		for _, other := range seen[h] {
			if slices.Equal(columns[distinct[other]], column) {
				k = other
			}
		}
		if k < 0 {
			k = len(distinct)
			distinct = append(distinct, j)
			seen[h] = append(seen[h], k)
		}
		merged[d.class[first[j]]] = uint8(k)
	}
	for c := range out.class {
		out.class[c] = merged[d.class[c]]
	}
	out.columns = len(distinct)
	out.next = make([]int32, len(out.accept)*out.columns)
	for k, j := range distinct {
		for i, t := range columns[j] {
			out.next[i*out.columns+k] = t
		}
	}
}

func hash(values []int32) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, v := range values {
		h = (h ^ uint64(uint32(v))) * 1099511628211
	}
	return h
}
