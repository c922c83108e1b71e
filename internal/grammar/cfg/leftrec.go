package cfg

// dropEmptyMoves replaces moves on nothing by the moves of where they lead, and makes every frame's
// start one that does not match the empty text.
func (c *compiler) dropEmptyMoves() {
	for q := range c.states {
		c.closeOver(int32(q))
	}
	for f := range c.frames {
		if s := c.states[c.frames[f].start]; s.final {
			s.final = false
			c.frames[f].start = c.push(s)
		}
	}
}

func (c *compiler) closeOver(q int32) {
	s := c.states[q]
	if len(s.moves) == 0 || s.moves[len(s.moves)-1].kind != onNothing { // they are the last in order
		return
	}
	seen := map[int32]bool{q: true}
	stack := []int32{q}
	out := state{count: s.count}
	for len(stack) > 0 {
		t := c.states[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		out.final = out.final || t.final
		for _, m := range t.moves {
			switch {
			case m.kind != onNothing:
				out.moves = append(out.moves, m)
			case !seen[m.to]:
				seen[m.to] = true
				stack = append(stack, m.to)
			}
		}
	}
	c.states[q] = out
}

// Left recursion: a frame that calls itself before it has matched anything, directly or through others.
// The frames of such a circle are replaced by their left corners. For a target A: begin with any frame
// of the circle that can begin without a call into it; where a frame B has matched, go on wherever B was
// called as a left corner, or, if B is A, be done. (Rosenkrantz and Lewis, Deterministic left corner
// parsing, 1970.)

// leftCall is a call at a frame's start.
type leftCall struct{ from, to, ret int32 }

func (c *compiler) leftCalls() [][]leftCall {
	out := make([][]leftCall, len(c.frames))
	for f, fr := range c.frames {
		for _, m := range c.states[fr.start].moves {
			if m.kind == onCall {
				out[f] = append(out[f], leftCall{int32(f), m.x, m.to})
			}
		}
	}
	return out
}

func (c *compiler) removeLeftRecursion() {
	left := c.leftCalls()
	starts := make([]int32, len(c.frames))
	for f, fr := range c.frames {
		starts[f] = fr.start
	}
	for _, circle := range circles(left) {
		in := map[int32]bool{}
		for _, f := range circle {
			in[f] = true
		}
		returns := map[int32][]leftCall{}
		for _, f := range circle {
			for _, l := range left[f] {
				if in[l.to] && c.states[l.ret].count >= 0 {
					c.b.failf("rule %q begins with itself inside a counted repetition: write it without left recursion", c.ruleOf(circle))
					return
				}
				if in[l.to] {
					returns[l.to] = append(returns[l.to], l)
				}
			}
		}
		for _, f := range circle {
			k := corner{c: c, target: f, circle: circle, in: in, returns: returns, ids: map[int64]int32{}}
			starts[f] = k.start()
			if c.b.err != nil {
				return
			}
		}
	}
	for f := range c.frames {
		c.frames[f].start = starts[f]
	}
}

// ruleOf is the name of a rule among frames.
func (c *compiler) ruleOf(frames []int32) string {
	for _, f := range frames {
		for _, r := range c.b.rules {
			if r.body == c.frames[f].expr {
				return r.name
			}
		}
	}
	return "?"
}

// corner makes the automaton of one target.
type corner struct {
	c       *compiler
	target  int32
	circle  []int32
	in      map[int32]bool
	returns map[int32][]leftCall
	ids     map[int64]int32 // of (frame, state)
	todo    []cornerState
}

type cornerState struct{ frame, state, id int32 }

func (k *corner) start() int32 {
	s := state{count: -1}
	for _, f := range k.circle {
		for _, m := range k.c.states[k.c.frames[f].start].moves {
			if m.kind != onCall || !k.in[m.x] {
				s.moves = append(s.moves, k.mapped(f, m))
			}
		}
	}
	id := k.c.push(s)
	for len(k.todo) > 0 && k.c.b.err == nil {
		t := k.todo[len(k.todo)-1]
		k.todo = k.todo[:len(k.todo)-1]
		k.fill(t)
	}
	return id
}

func (k *corner) mapped(f int32, m move) move {
	m.to = k.state(f, m.to)
	return m
}

// state is the copy of a state of frame f.
func (k *corner) state(f, q int32) int32 {
	if k.c.states[q].count >= 0 || q == finalState && f == k.target && len(k.returns[f]) == 0 {
		return q
	}
	key := int64(f)<<32 | int64(q)
	id, ok := k.ids[key]
	if !ok {
		id = k.c.push(state{count: -1})
		k.ids[key] = id
		k.todo = append(k.todo, cornerState{f, q, id})
	}
	return id
}

func (k *corner) fill(t cornerState) {
	s := state{count: -1}
	done := map[int32]bool{}
	type place struct{ frame, state int32 }
	stack := []place{{t.frame, t.state}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, m := range k.c.states[p.state].moves {
			s.moves = append(s.moves, k.mapped(p.frame, m))
		}
		if !k.c.states[p.state].final || done[p.frame] {
			continue
		}
		done[p.frame] = true
		s.final = s.final || p.frame == k.target
		for _, l := range k.returns[p.frame] {
			stack = append(stack, place{l.from, l.ret})
		}
	}
	if t.id != deadState {
		k.c.moves += len(s.moves)
		k.c.states[t.id] = s
	}
}

// circles are the groups of frames that call each other, or themselves, at their starts.
func circles(left [][]leftCall) [][]int32 {
	t := tarjan{left: left, index: make([]int32, len(left)), low: make([]int32, len(left)), on: make([]bool, len(left))}
	for f := range left {
		if t.index[f] == 0 {
			t.visit(int32(f))
		}
	}
	return t.out
}

// tarjan finds strongly connected components (Tarjan, 1972).
type tarjan struct {
	left       [][]leftCall
	index, low []int32
	on         []bool
	stack      []int32
	next       int32
	out        [][]int32
}

func (t *tarjan) visit(f int32) {
	t.next++
	t.index[f], t.low[f] = t.next, t.next
	t.stack = append(t.stack, f)
	t.on[f] = true
	self := false
	for _, l := range t.left[f] {
		self = self || l.to == f
		if t.index[l.to] == 0 {
			t.visit(l.to)
			t.low[f] = min(t.low[f], t.low[l.to])
		} else if t.on[l.to] {
			t.low[f] = min(t.low[f], t.index[l.to])
		}
	}
	if t.low[f] != t.index[f] {
		return
	}
	n := len(t.stack) - 1
	for t.stack[n] != f {
		n--
	}
	group := append([]int32(nil), t.stack[n:]...)
	t.stack = t.stack[:n]
	for _, g := range group {
		t.on[g] = false
	}
	if len(group) > 1 || self {
		t.out = append(t.out, group)
	}
}
