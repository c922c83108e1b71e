package cfg

import (
	"math"
	"slices"
)

// Next is an entry of a Row: where a byte leads.
type Next uint32

// Config is where it leads; Dead: nowhere.
func (n Next) Config() Config { return Config(n >> 2) }

// Leaves says that the bottom was reached: see Machine.Leaves.
func (n Next) Leaves() bool { return n&1 != 0 }

// Ends says that no byte goes on from there.
func (n Next) Ends() bool { return n&2 != 0 }

func (m *Machine) next(c Config) Next {
	n := Next(c) << 2
	if m.configs[c].leaves > 0 {
		n |= 1
	}
	if m.configs[c].n == 0 {
		n |= 2
	}
	return n
}

// Classes are the classes of bytes: bytes of one class lead to the same Config always.
func (m *Machine) Classes() *[256]uint8 { return &m.g.class }

type bucket struct {
	from, to int // classes
	threads  []thread
}

// Row is where each class of bytes leads from c. It does not change.
func (m *Machine) Row(c Config) []Next {
	row := m.RowAt(c)
	return m.rows[row : int(row)+m.g.classes]
}

// RowAt is where in Rows the Row of c begins.
func (m *Machine) RowAt(c Config) int32 {
	if row := m.configs[c].row; row >= 0 {
		return row
	}
	return m.fill(c)
}

// Rows is all rows, until RowAt or Row is called for a Config that was not asked for before.
func (m *Machine) Rows() []Next { return m.rows }

func (m *Machine) fill(c Config) int32 {
	m.expand(c)
	n := m.intervals()
	row := len(m.rows)
	m.rows = append(m.rows, make([]Next, m.g.classes)...)
	for i := range n {
		b := &m.buckets[i]
		if len(b.threads) == 0 {
			continue
		}
		m.begin()
		for _, t := range b.threads {
			m.settle(t.state, t.stack)
		}
		to := m.next(m.finish())
		for class := b.from; class < b.to; class++ {
			m.rows[row+class] = to
		}
	}
	m.configs[c].row = int32(row)
	return int32(row)
}

// intervals cuts the classes where a move of an active thread begins or ends, and sorts the moves into
// the intervals. It returns how many there are.
func (m *Machine) intervals() int {
	var cut [257]bool
	var at [256]int32
	for _, t := range m.active {
		s := &m.g.states[t.state]
		for _, mv := range m.g.bytes[s.bytes[0]:s.bytes[1]] {
			cut[mv.lo] = true
			cut[int(mv.hi)+1] = true
		}
	}
	n := -1
	for class := range m.g.classes {
		if class == 0 || cut[class] {
			n++
			if n == len(m.buckets) {
				m.buckets = append(m.buckets, bucket{})
			}
			m.buckets[n].from, m.buckets[n].threads = class, m.buckets[n].threads[:0]
		}
		m.buckets[n].to = class + 1
		at[class] = int32(n)
	}
	for _, t := range m.active {
		s := &m.g.states[t.state]
		for _, mv := range m.g.bytes[s.bytes[0]:s.bytes[1]] {
			for i := at[mv.lo]; i <= at[mv.hi]; i++ {
				m.buckets[i].threads = append(m.buckets[i].threads, thread{mv.to, t.stack})
			}
		}
	}
	return n + 1
}

// Part is some threads of a Config as a Config of its own with an open bottom: what goes on within one
// frame, whatever the stack below, so that it can be shared. Where it leaves, Pop(Below) goes on.
type Part struct {
	Config Config
	Below  Stack
	// Counted: the part is within a counted repetition. A thread's or leave's count is from 0 up, counting
	// from the repetition that is being matched. Threads with a count above Most are dead; it may leave with
	// a count of Least..Most.
	Counted     bool
	Least, Most int32
}

// Factor appends the parts of c: a byte may come at c if it may at one of them. Frames that are called at
// c are parts of their own.
func (m *Machine) Factor(dst []Part, c Config) []Part {
	if c == Dead || m.err != nil {
		return dst
	}
	m.expand(c)
	all := m.active[:0]
	for _, t := range m.active {
		if bare := m.g.states[t.state].bare; bare >= 0 {
			all = append(all, thread{bare, t.stack})
		}
	}
	slices.SortFunc(all, func(a, b thread) int {
		if a.stack != b.stack {
			return int(a.stack) - int(b.stack)
		}
		return int(a.state) - int(b.state)
	})
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].stack == all[0].stack {
			n++
		}
		dst = append(dst, m.part(all[:n]))
		all = all[n:]
	}
	return dst
}

// part is the part of threads with one stack, which it overwrites.
func (m *Machine) part(all []thread) Part {
	below := all[0].stack
	p := Part{Below: below}
	inner := bottom
	if es := m.elemsOf(below); len(es) == 1 && es[0].ret >= 0 && es[0].up != counted {
		if i := m.g.states[es[0].ret].count; i >= 0 {
			inner = m.countedPart(&p, es[0], &m.g.counters[i])
		}
	}
	for i := range all {
		all[i].stack = inner
	}
	p.Config = m.intern(all, nil)
	return p
}

func (m *Machine) countedPart(p *Part, e elem, k *counter) Stack {
	p.Below = e.up
	if k.max < 0 && e.count >= k.min {
		return m.internStack([]elem{{e.ret, e.count, bottom}})
	}
	p.Counted = true
	p.Least = max(0, k.min-e.count)
	p.Most = math.MaxInt32
	if k.max >= 0 {
		p.Most = k.max - e.count
	}
	return m.internStack([]elem{{m.symbol(k.body, e.ret), 0, counted}})
}

// symbol is one counter that stands for all with the same body.
func (m *Machine) symbol(body, ret int32) int32 {
	if m.symbols == nil {
		m.symbols = map[int32]int32{}
	}
	if s, ok := m.symbols[body]; ok {
		return s
	}
	m.symbols[body] = ret
	return ret
}

// Cost is the least count of c, which is of a counted part: whether any thread is alive at a count of Most.
func (m *Machine) Cost(c Config) int32 { return m.configs[c].cost }

func (m *Machine) cost(threads []thread, leaves []int32) int32 {
	least := int32(math.MaxInt32)
	for _, l := range leaves {
		least = min(least, l)
	}
	for _, t := range threads {
		least = min(least, m.stacks[t.stack].count)
	}
	return least
}

// Pop is what goes on after a part with k below was left.
func (m *Machine) Pop(k Stack) Config {
	if m.err != nil {
		return Dead
	}
	if m.stacks[k].popped < 0 {
		m.begin()
		m.ret(k)
		m.stacks[k].popped = m.finish()
	}
	return m.stacks[k].popped
}

// Import replaces Configs of another machine of the same grammar by those of m.
func (m *Machine) Import(from *Machine, all []Config) {
	im := importer{m, from, map[Stack]Stack{bottom: bottom, counted: counted}}
	done := map[Config]Config{}
	for i, c := range all {
		to, ok := done[c]
		if !ok {
			to = im.config(c)
			done[c] = to
		}
		all[i] = to
	}
}

func (im *importer) config(c Config) Config {
	out := make([]thread, 0, im.from.configs[c].n)
	for _, t := range im.from.threadsOf(c) {
		out = append(out, thread{t.state, im.stack(t.stack)})
	}
	slices.SortFunc(out, compareThreads)
	return im.to.intern(out, slices.Clone(im.from.Leaves(c)))
}

type importer struct {
	to, from *Machine
	done     map[Stack]Stack
}

func (im *importer) stack(k Stack) Stack {
	if to, ok := im.done[k]; ok {
		return to
	}
	out := make([]elem, 0, im.from.stacks[k].n)
	for _, e := range im.from.elemsOf(k) {
		if e.ret >= 0 {
			e.up = im.stack(e.up)
		}
		out = append(out, e)
	}
	slices.SortFunc(out, compareElems)
	to := im.to.internStack(out)
	im.done[k] = to
	return to
}
