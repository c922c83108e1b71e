package cfg

import "slices"

// pendingCall is a frame that is about to be entered from one thread.
type pendingCall struct {
	frame int32
	e     elem
	tail  bool // what is below is entered as it is: the call was the caller's last move
}

// Step is c after one byte.
func (m *Machine) Step(c Config, b byte) Config {
	if c == Dead || m.err != nil {
		return Dead
	}
	if row := m.configs[c].row; row >= 0 {
		return m.rows[int(row)+int(m.g.class[b])].Config()
	}
	class := m.g.class[b]
	m.expand(c)
	m.begin()
	for _, t := range m.active {
		s := &m.g.states[t.state]
		for _, mv := range m.g.bytes[s.bytes[0]:s.bytes[1]] {
			if mv.lo <= class && class <= mv.hi {
				m.settle(mv.to, t.stack)
			}
		}
	}
	return m.finish()
}

// StepToken is c after a control token.
func (m *Machine) StepToken(c Config, token int32) Config {
	if c == Dead || m.err != nil || len(m.g.tokens) == 0 {
		return Dead
	}
	m.expand(c)
	m.begin()
	for _, t := range m.active {
		s := &m.g.states[t.state]
		for _, mv := range m.g.tokens[s.tokens[0]:s.tokens[1]] {
			if mv.token == token {
				m.settle(mv.to, t.stack)
			}
		}
	}
	return m.finish()
}

// Allowed appends the control tokens that may come at c; one may be there twice.
func (m *Machine) Allowed(dst []int32, c Config) []int32 {
	if c == Dead || m.err != nil || len(m.g.tokens) == 0 {
		return dst
	}
	m.expand(c)
	for _, t := range m.active {
		s := &m.g.states[t.state]
		for _, mv := range m.g.tokens[s.tokens[0]:s.tokens[1]] {
			dst = append(dst, mv.token)
		}
	}
	return dst
}

// expand makes m.active of a Config: its threads, and those at the starts of all frames that they call,
// directly or through others. A frame is entered once, with the stack of all its callers: callers come
// before what they call at their starts.
func (m *Machine) expand(c Config) {
	m.active = append(m.active[:0], m.threadsOf(c)...)
	m.pending = m.pending[:0]
	for i := 0; ; i++ {
		if i == len(m.active) && !m.enter() {
			return
		}
		t := m.active[i]
		s := &m.g.states[t.state]
		for _, call := range m.g.calls[s.calls[0]:s.calls[1]] {
			m.pending = append(m.pending, m.callOf(call, t.stack))
		}
	}
}

func (m *Machine) callOf(call callMove, below Stack) pendingCall {
	if call.ret == finalState {
		return pendingCall{frame: call.frame, e: elem{up: below}, tail: true}
	}
	e := elem{ret: call.ret, up: below}
	if m.g.states[call.ret].count >= 0 {
		e.count = 1
	}
	return pendingCall{frame: call.frame, e: e}
}

// enter adds the thread of the pending frame of the smallest rank.
func (m *Machine) enter() bool {
	if len(m.pending) == 0 {
		return false
	}
	f := m.pending[0].frame
	for _, p := range m.pending[1:] {
		if m.g.frames[p.frame].rank < m.g.frames[f].rank {
			f = p.frame
		}
	}
	var only Stack
	n := 0
	m.join = m.join[:0]
	rest := m.pending[:0]
	for _, p := range m.pending {
		switch {
		case p.frame != f:
			rest = append(rest, p)
			continue
		case p.tail:
			only = p.e.up
			m.join = append(m.join, m.elemsOf(p.e.up)...)
		default:
			only = -1
			m.join = append(m.join, p.e)
		}
		n++
	}
	m.pending = rest
	if n > 1 || only < 0 {
		only = m.joined()
	}
	m.active = append(m.active, thread{m.g.frames[f].start, only})
	return true
}

// joined is the stack of m.join.
func (m *Machine) joined() Stack {
	if len(m.join) > 1 {
		slices.SortFunc(m.join, compareElems)
		m.join = slices.Compact(m.join)
	}
	return m.internStack(m.join)
}

// begin starts a new set of threads.
func (m *Machine) begin() {
	m.out, m.exits = m.out[:0], m.exits[:0]
	m.epoch++
}

// settle adds a thread, and those to which it returns if its frame may be complete.
func (m *Machine) settle(state int32, k Stack) {
	s := &m.g.states[state]
	if state != finalState {
		m.out = append(m.out, thread{state, k})
	}
	if s.final {
		m.ret(k)
	}
}

// ret goes on after a frame that was entered with k.
func (m *Machine) ret(k Stack) {
	n := m.stacks[k]
	if n.mark == m.epoch {
		return
	}
	m.stacks[k].mark = m.epoch
	for i := n.first; i < n.first+n.n; i++ {
		e := m.elems[i]
		switch {
		case e.ret == retBottom:
			m.exit(0)
		case e.ret == retCounted: // only below counters
		case m.g.states[e.ret].count >= 0:
			m.count(e)
		default:
			m.settle(e.ret, e.up)
		}
	}
}

func (m *Machine) exit(count int32) {
	if !slices.Contains(m.exits, count) {
		m.exits = append(m.exits, count)
	}
}

// count goes on after one more repetition.
func (m *Machine) count(e elem) {
	if e.up == counted {
		m.exit(e.count)
		m.again(e, e.count+1)
		return
	}
	k := &m.g.counters[m.g.states[e.ret].count]
	if e.count >= k.min {
		m.ret(e.up)
	}
	switch {
	case k.max < 0:
		m.again(e, min(e.count+1, k.min))
	case e.count < k.max:
		m.again(e, e.count+1)
	}
}

func (m *Machine) again(e elem, count int32) {
	k := &m.g.counters[m.g.states[e.ret].count]
	e.count = count
	t := thread{m.g.frames[k.body].start, m.internStack([]elem{e})}
	if !slices.Contains(m.out, t) {
		m.out = append(m.out, t)
	}
}

// finish is the Config of what settle and exit collected. Threads of one state become one, with the
// stacks of all.
func (m *Machine) finish() Config {
	if m.err != nil {
		return Dead
	}
	t := m.out
	if len(t) > 1 {
		slices.SortFunc(t, compareThreads)
		t = slices.Compact(t)
		n := 0
		for i := 0; i < len(t); {
			j := i + 1
			for j < len(t) && t[j].state == t[i].state {
				j++
			}
			t[n] = t[i]
			if j > i+1 {
				m.join = m.join[:0]
				for _, x := range t[i:j] {
					m.join = append(m.join, m.elemsOf(x.stack)...)
				}
				t[n].stack = m.joined()
			}
			n++
			i = j
		}
		t = t[:n]
	}
	slices.Sort(m.exits)
	return m.intern(t, m.exits)
}
