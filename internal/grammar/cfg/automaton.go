package cfg

import (
	"encoding/binary"
	"fmt"
)

// Automaton is a deterministic automaton over bytes. From every state that can be reached an
// accepting state can be reached: its maker leaves dead ends out.
type Automaton interface {
	Start() int
	Next(state int, c byte) int // < 0: no way on
	Accepting(state int) bool
}

// edger is an Automaton that lists the moves of a state: runs of bytes in their order, those with one
// target joined. Large automata are read much faster so.
type edger interface {
	Edges(state int, f func(lo, hi byte, to int))
}

// edges calls f for the moves of a state in the order of their bytes.
func edges(d Automaton, state int, f func(lo, hi byte, to int)) {
	if e, ok := d.(edger); ok {
		e.Edges(state, f)
		return
	}
	for c := range 256 {
		if to := d.Next(state, byte(c)); to >= 0 {
			f(byte(c), byte(c), to)
		}
	}
}

// span is a move on the bytes lo..hi to a state.
type span struct {
	lo, hi byte
	to     int32
}

// automaton is a copy of an Automaton with states numbered from 0, the start, in order of discovery.
type automaton struct {
	spans  [][]span
	accept []bool
}

// DFA is a regular language. Automata that differ only in the numbers of their states are one expression.
func (b *Builder) DFA(d Automaton) Expr {
	a, err := b.copyAutomaton(d)
	if err != nil {
		b.Fail(err)
		return nothing
	}
	if len(a.spans) == 1 && len(a.spans[0]) == 0 {
		if a.accept[0] {
			return empty
		}
		return nothing
	}
	text := a.text()
	e := b.intern(node{kind: kDFA, x: -1, text: text})
	if b.err == nil && int(e) == len(b.nodes)-1 && b.nodes[e].x < 0 {
		b.nodes[e].x = int32(len(b.automata))
		b.automata = append(b.automata, a)
	}
	return e
}

func (b *Builder) copyAutomaton(d Automaton) (*automaton, error) {
	ids := newNumbering(d)
	ids.of(d.Start())
	a := &automaton{}
	var spans []span // of all states, in a row
	var ends []int
	for i := 0; i < len(ids.order); i++ {
		if i%256 == 255 && b.late() {
			return nil, b.err
		}
		first := len(spans)
		edges(d, ids.order[i], func(lo, hi byte, to int) {
			id := ids.of(to)
			if n := len(spans); n > first && spans[n-1].to == id && spans[n-1].hi+1 == lo {
				spans[n-1].hi = hi
			} else {
				spans = append(spans, span{lo, hi, id})
			}
		})
		if len(ids.order) > b.limits.Nodes {
			return nil, overLimit("nodes", b.limits.Nodes, "states of an automaton")
		}
		ends = append(ends, len(spans))
		a.accept = append(a.accept, d.Accepting(ids.order[i]))
	}
	a.spans = make([][]span, len(ends))
	first := 0
	for i, end := range ends {
		a.spans[i] = spans[first:end:end]
		first = end
	}
	if !a.alive() {
		return nil, fmt.Errorf("grammar: an automaton with states that lead to no end")
	}
	return a, nil
}

// numbering gives states numbers from 0 in the order in which they are asked for.
type numbering struct {
	order []int
	table []int32 // by state, +1; nil where the automaton does not say how many it has
	ids   map[int]int32
}

func newNumbering(d Automaton) *numbering {
	if sized, ok := d.(interface{ States() int }); ok {
		return &numbering{table: make([]int32, sized.States())}
	}
	return &numbering{ids: map[int]int32{}}
}

func (n *numbering) of(state int) int32 {
	if n.table != nil {
		if n.table[state] == 0 {
			n.order = append(n.order, state)
			n.table[state] = int32(len(n.order))
		}
		return n.table[state] - 1
	}
	id, ok := n.ids[state]
	if !ok {
		id = int32(len(n.order))
		n.ids[state] = id
		n.order = append(n.order, state)
	}
	return id
}

// alive says that every state leads to an accepting one, or that the start alone is there.
func (a *automaton) alive() bool {
	if len(a.spans) == 1 && len(a.spans[0]) == 0 {
		return true
	}
	into := make([]int32, len(a.spans)+1) // where the states before one begin in back
	for _, spans := range a.spans {
		for _, s := range spans {
			into[s.to]++
		}
	}
	for i := 1; i < len(into); i++ {
		into[i] += into[i-1]
	}
	back := make([]int32, into[len(into)-1])
	var queue []int32
	live := make([]bool, len(a.spans))
	for q, spans := range a.spans {
		for _, s := range spans {
			into[s.to]--
			back[into[s.to]] = int32(q)
		}
		if a.accept[q] {
			live[q] = true
			queue = append(queue, int32(q))
		}
	}
	count := len(queue)
	for len(queue) > 0 {
		q := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range back[into[q]:into[q+1]] {
			if !live[p] {
				live[p] = true
				count++
				queue = append(queue, p)
			}
		}
	}
	return count == len(a.spans)
}

func (a *automaton) text() string {
	n := 3 * len(a.spans)
	for _, spans := range a.spans {
		n += 6 * len(spans)
	}
	out := make([]byte, 0, n)
	for q, spans := range a.spans {
		mark := byte(0)
		if a.accept[q] {
			mark = 1
		}
		out = append(out, mark)
		out = binary.LittleEndian.AppendUint16(out, uint16(len(spans)))
		for _, s := range spans {
			out = append(out, s.lo, s.hi)
			out = binary.LittleEndian.AppendUint32(out, uint32(s.to))
		}
	}
	return string(out)
}
