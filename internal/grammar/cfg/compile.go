package cfg

import (
	"encoding/binary"
	"slices"
)

// A grammar is compiled to frames: a rule, a loop, an automaton or a large shared expression each is a
// small automaton of its own, whose moves are bytes, control tokens and calls of other frames. Calls
// match at least one byte or token; where the empty text would do, the caller has the moves of what
// follows as well. Frames are what masks are cached by, so that equal string bodies share them.

const (
	deadState  = 0 // no moves, not final
	finalState = 1 // no moves, final
)

type moveKind uint8

const (
	onByte  moveKind = iota // lo..hi
	onToken                 // x is the token
	onCall                  // x is the frame, to is where it returns
	onNothing
)

type move struct {
	kind   moveKind
	lo, hi byte
	x      int32
	to     int32
}

func compareMoves(a, b move) int {
	switch {
	case a.kind != b.kind:
		return int(a.kind) - int(b.kind)
	case a.lo != b.lo:
		return int(a.lo) - int(b.lo)
	case a.hi != b.hi:
		return int(a.hi) - int(b.hi)
	case a.x != b.x:
		return int(a.x) - int(b.x)
	}
	return int(a.to) - int(b.to)
}

type state struct {
	moves []move
	final bool
	count int32 // index of a counter, for where its body returns; -1: none
}

// counter is a repetition that is counted while matching.
type counter struct {
	body     int32 // frame
	min, max int32 // max < 0: no bound
}

type frame struct {
	expr  Expr
	start int32
}

type compiler struct {
	b          *Builder
	null, live []bool
	size       []int32 // of an expression written out in states, cut off at bigExpr
	uses       []int32
	depth      []int32
	written    []int32 // size with rules written out; 0: not known yet
	states     []state
	moves      int
	index      map[string]int32
	memo       map[uint64]int32
	frames     []frame
	frameOf    map[Expr]int32
	counters   []counter
	loop       int32 // the state of the loop that is being made; -1: none
	key        []byte
}

// Grammar compiles what was built, with start as what a whole text must match.
func (b *Builder) Grammar(start Expr) (*Grammar, error) {
	if !b.valid(start) {
		return nil, b.err
	}
	c := &compiler{b: b, null: b.nullable(), live: b.productive(), loop: -1,
		index: map[string]int32{}, memo: map[uint64]int32{}, frameOf: map[Expr]int32{}}
	if err := b.check(start, c.live); err != nil {
		b.Fail(err)
		return nil, err
	}
	c.measure()
	c.add(state{count: -1})
	c.add(state{final: true, count: -1})
	c.call(start)
	for f := 0; f < len(c.frames) && !c.late(); f++ {
		c.build(f)
	}
	if b.err == nil {
		c.dropEmptyMoves()
		c.removeLeftRecursion()
	}
	if b.err != nil {
		return nil, b.err
	}
	g := c.finish()
	g.nullable = c.null[start]
	return g, nil
}

func (c *compiler) late() bool { return c.b.late() }

// bigExpr is the size from which an expression that is used more than once becomes a frame.
const bigExpr = 48

// maxNesting is how deep expressions go within one frame.
const maxNesting = 1000

// measure fills sizes, uses and depths; parts come before what they are parts of.
func (c *compiler) measure() {
	nodes := c.b.nodes
	c.size = make([]int32, len(nodes))
	c.uses = make([]int32, len(nodes))
	c.depth = make([]int32, len(nodes))
	c.written = make([]int32, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		size := int64(1)
		switch n.kind {
		case kBytes:
			size = int64(len(n.text))
		case kRunes:
			size = int64(len(n.args))
		}
		if n.hasParts() {
			for _, a := range n.args {
				size += int64(c.size[a])
				c.uses[a]++
				c.depth[i] = max(c.depth[i], c.depth[a]+1)
			}
		}
		if n.kind == kRepeat {
			size *= int64(max(n.y, n.x, 1))
			c.uses[n.args[0]] += max(n.y, n.x) // 1 of a loop's is written out
		}
		c.size[i] = int32(min(size, 1<<20))
		if c.depth[i] > maxNesting {
			c.depth[i] = 0
		}
	}
}

// add makes a state, or finds it.
func (c *compiler) add(s state) int32 {
	slices.SortFunc(s.moves, compareMoves)
	s.moves = slices.Compact(s.moves)
	key := c.key[:0]
	if s.final {
		key = append(key, 1)
	} else {
		key = append(key, 0)
	}
	key = binary.LittleEndian.AppendUint32(key, uint32(s.count))
	for _, m := range s.moves {
		key = append(key, byte(m.kind), m.lo, m.hi)
		key = binary.LittleEndian.AppendUint32(key, uint32(m.x))
		key = binary.LittleEndian.AppendUint32(key, uint32(m.to))
	}
	c.key = key
	if q, ok := c.index[string(key)]; ok {
		return q
	}
	q := c.push(s)
	c.index[string(key)] = q
	return q
}

// push makes a state without looking for an equal one.
func (c *compiler) push(s state) int32 {
	c.moves += len(s.moves)
	if len(c.states) >= c.b.limits.Nodes || c.moves > 8*c.b.limits.Nodes {
		c.b.Fail(overLimit("nodes", c.b.limits.Nodes, "states"))
		return deadState
	}
	if len(c.states)%1024 == 1023 && c.late() {
		return deadState
	}
	c.states = append(c.states, s)
	return int32(len(c.states) - 1)
}

// either is the state with the moves of all.
func (c *compiler) either(all ...int32) int32 {
	s := state{count: -1}
	used := 0
	last := int32(deadState)
	for _, q := range all {
		if q == deadState || q == last {
			continue
		}
		used++
		last = q
		c.join(&s, q)
	}
	if used <= 1 {
		return last
	}
	return c.add(s)
}

// join adds the moves of q to s.
func (c *compiler) join(s *state, q int32) {
	if q == c.loop {
		s.moves = append(s.moves, move{kind: onNothing, to: q})
		return
	}
	s.moves = append(s.moves, c.states[q].moves...)
	s.final = s.final || c.states[q].final
}

// step is the state with one move, on bytes.
func (c *compiler) step(lo, hi byte, to int32) int32 {
	if to == deadState {
		return deadState
	}
	return c.add(state{moves: []move{{kind: onByte, lo: lo, hi: hi, to: to}}, count: -1})
}

// call is the frame of an expression.
func (c *compiler) call(e Expr) int32 {
	if n := &c.b.nodes[e]; n.kind == kRef { // the rule, or what it is another name for
		e = c.b.rules[n.x].body
	}
	f, ok := c.frameOf[e]
	if !ok {
		f = int32(len(c.frames))
		c.frameOf[e] = f
		c.frames = append(c.frames, frame{expr: e})
	}
	return f
}

// build makes a frame's states.
func (c *compiler) build(f int) {
	e := c.frames[f].expr
	n := c.b.nodes[e]
	var start int32
	switch {
	case n.kind == kDFA:
		start = c.automaton(c.b.automata[n.x], finalState)
	case n.kind == kRepeat && n.y < 0 && n.x <= 1:
		start = c.star(Expr(n.args[0]))
	case n.kind == kRepeat && !c.writtenOut(&n):
		start = c.counted(&n)
	default:
		start = c.inner(e, finalState)
	}
	c.frames[f].start = start
}

// star is e once or more.
func (c *compiler) star(e Expr) int32 {
	loop := c.push(state{count: -1})
	c.loop = loop
	start := c.body(e, loop)
	c.loop = -1
	c.states[loop] = state{moves: c.states[start].moves, final: true, count: -1}
	return start
}

// counted is a repetition whose count is kept on the stack.
func (c *compiler) counted(n *node) int32 {
	body := Expr(n.args[0])
	k := counter{body: c.call(body), min: max(n.x, 1), max: n.y}
	if c.null[body] {
		k.min = 1
	}
	q := c.push(state{count: int32(len(c.counters))})
	c.counters = append(c.counters, k)
	return c.add(state{moves: []move{{kind: onCall, x: k.body, to: q}}, count: -1})
}

// body is make for what is repeated: it is written out even where others use it too. A loop around calls would
// be left and entered again with every character of a text.
func (c *compiler) body(e Expr, loop int32) int32 {
	const most = 1024
	n := &c.b.nodes[e]
	switch {
	case !c.live[e]:
		return deadState
	case n.kind == kDFA && len(c.b.automata[n.x].spans) <= most:
		return c.automaton(c.b.automata[n.x], loop)
	case (n.kind == kSeq || n.kind == kAlt) && c.size[e] <= most && c.depth[e] > 0:
		return c.inner(e, loop)
	}
	return c.make(e, loop)
}

// automaton is a, and then k.
func (c *compiler) automaton(a *automaton, k int32) int32 {
	ids := make([]int32, len(a.spans))
	for q, spans := range a.spans {
		ids[q] = k
		if len(spans) > 0 || q == 0 {
			ids[q] = c.push(state{count: -1})
		}
	}
	for q, spans := range a.spans {
		if ids[q] == k || ids[q] == deadState {
			continue
		}
		s := state{count: -1, moves: make([]move, 0, len(spans))}
		for _, sp := range spans {
			s.moves = append(s.moves, move{kind: onByte, lo: sp.lo, hi: sp.hi, to: ids[sp.to]})
		}
		if a.accept[q] {
			c.join(&s, k)
		}
		slices.SortFunc(s.moves, compareMoves)
		c.moves += len(s.moves)
		c.states[ids[q]] = s
	}
	return ids[0]
}
