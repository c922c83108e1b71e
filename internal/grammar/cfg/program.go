package cfg

import "sort"

// Grammar is a compiled grammar; it does not change, and many machines may share it.
type Grammar struct {
	limits   Limits
	nullable bool
	class    [256]uint8 // bytes that no move tells apart have the same class
	classes  int
	firstOf  [256]uint8 // bytes of a class
	lastOf   [256]uint8
	states   []compiled
	bytes    []byteMove
	calls    []callMove
	tokens   []tokenMove
	frames   []compiledFrame
	counters []counter
}

type compiled struct {
	bytes, calls, tokens [2]int32 // where its moves are
	count                int32
	bare                 int32 // the state with its moves on bytes alone; -1: none
	final                bool
}

type byteMove struct {
	lo, hi uint8 // classes
	to     int32
}

type callMove struct{ frame, ret int32 }

type tokenMove struct{ token, to int32 }

type compiledFrame struct {
	start int32
	rank  int32 // smaller than that of frames that it calls at its start
}

// Tokens returns the control tokens that the grammar mentions, sorted.
func (g *Grammar) Tokens() []int32 {
	seen := map[int32]bool{}
	var out []int32
	for _, t := range g.tokens {
		if !seen[t.token] {
			seen[t.token] = true
			out = append(out, t.token)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}

// Limits are those that the grammar was built with.
func (g *Grammar) Limits() Limits { return g.limits }

// Size is the states of the grammar's automata.
func (g *Grammar) Size() int { return len(g.states) }

// Bytes is about how much memory the grammar takes.
func (g *Grammar) Bytes() int {
	return 512 + 40*len(g.states) + 8*(len(g.bytes)+len(g.calls)+len(g.tokens)+len(g.frames)) + 12*len(g.counters)
}

// finish keeps what the first frame reaches, in the order of discovery.
func (c *compiler) finish() *Grammar {
	g := &Grammar{limits: c.b.limits, counters: c.counters}
	r := reach{c: c, state: make([]int32, len(c.states)), frame: map[int32]int32{}}
	r.visitState(deadState)
	r.visitState(finalState)
	r.visitFrame(0)
	for i := 0; i < len(r.states); i++ {
		if s := &c.states[r.states[i]]; s.count >= 0 {
			r.visitFrame(c.counters[s.count].body)
		}
		for _, m := range c.states[r.states[i]].moves {
			if m.kind == onCall {
				r.visitFrame(m.x)
			}
			r.visitState(m.to)
		}
	}
	g.classify(c, r.states)
	g.makeRoom(c, r.states)
	for _, q := range r.states {
		g.emit(&c.states[q], &r)
	}
	for _, f := range r.frames {
		g.frames = append(g.frames, compiledFrame{start: r.state[c.frames[f].start]})
	}
	for i := range g.counters {
		if f, ok := r.frame[g.counters[i].body]; ok {
			g.counters[i].body = f
		}
	}
	g.rankFrames()
	g.addBare()
	return g
}

// makeRoom allocates the tables that emit fills.
func (g *Grammar) makeRoom(c *compiler, states []int32) {
	var n [onNothing + 1]int
	for _, q := range states {
		for _, m := range c.states[q].moves {
			n[m.kind]++
		}
	}
	g.bytes, g.calls, g.tokens = make([]byteMove, 0, n[onByte]), make([]callMove, 0, n[onCall]), make([]tokenMove, 0, n[onToken])
	g.states = make([]compiled, 0, len(states))
}

// addBare makes a state without calls for each that has them.
func (g *Grammar) addBare() {
	for q := range g.states {
		s := g.states[q]
		switch {
		case s.bytes[0] == s.bytes[1]:
			g.states[q].bare = -1
		case s.calls[0] == s.calls[1]:
			g.states[q].bare = int32(q)
		default:
			s.calls, s.tokens = [2]int32{}, [2]int32{}
			s.bare = int32(len(g.states))
			g.states[q].bare = s.bare
			g.states = append(g.states, s)
		}
	}
}

type reach struct {
	c              *compiler
	states, frames []int32
	state          []int32         // new numbers, by old; 0, that of deadState, for those that are not reached
	frame          map[int32]int32 // new numbers
}

func (r *reach) visitState(q int32) {
	if r.state[q] == 0 && (q != deadState || len(r.states) == 0) {
		r.state[q] = int32(len(r.states))
		r.states = append(r.states, q)
	}
}

func (r *reach) visitFrame(f int32) {
	if _, ok := r.frame[f]; !ok {
		r.frame[f] = int32(len(r.frames))
		r.frames = append(r.frames, f)
		r.visitState(r.c.frames[f].start)
	}
}

func (g *Grammar) classify(c *compiler, states []int32) {
	var cut [257]bool
	for _, q := range states {
		for _, m := range c.states[q].moves {
			if m.kind == onByte {
				cut[m.lo] = true
				cut[int(m.hi)+1] = true
			}
		}
	}
	for b := range 256 {
		if cut[b] && b > 0 {
			g.classes++
			g.firstOf[g.classes] = uint8(b)
		}
		g.class[b] = uint8(g.classes)
		g.lastOf[g.classes] = uint8(b)
	}
	g.classes++
}

func (g *Grammar) emit(s *state, r *reach) {
	out := compiled{final: s.final, count: s.count}
	out.bytes[0], out.calls[0], out.tokens[0] = int32(len(g.bytes)), int32(len(g.calls)), int32(len(g.tokens))
	for _, m := range s.moves {
		to := r.state[m.to]
		switch m.kind {
		case onByte:
			g.bytes = append(g.bytes, byteMove{g.class[m.lo], g.class[m.hi], to})
		case onCall:
			g.calls = append(g.calls, callMove{r.frame[m.x], to})
		case onToken:
			g.tokens = append(g.tokens, tokenMove{m.x, to})
		}
	}
	out.bytes[1], out.calls[1], out.tokens[1] = int32(len(g.bytes)), int32(len(g.calls)), int32(len(g.tokens))
	g.states = append(g.states, out)
}

// rankFrames orders frames so that callers at a start come before what they call.
func (g *Grammar) rankFrames() {
	done := make([]bool, len(g.frames))
	next := int32(len(g.frames))
	var visit func(f int32)
	visit = func(f int32) {
		if done[f] {
			return
		}
		done[f] = true
		s := &g.states[g.frames[f].start]
		for _, m := range g.calls[s.calls[0]:s.calls[1]] {
			visit(m.frame)
		}
		g.frames[f].rank = next
		next--
	}
	for f := range g.frames {
		visit(int32(f))
	}
}
