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
	ids := map[int]int32{d.Start(): 0}
	order := []int{d.Start()}
	a := &automaton{}
	for i := 0; i < len(order); i++ {
		if i%256 == 255 && b.late() {
			return nil, b.err
		}
		var spans []span
		edges(d, order[i], func(lo, hi byte, to int) {
			id, ok := ids[to]
			if !ok {
				id = int32(len(order))
				ids[to] = id
				order = append(order, to)
			}
			if n := len(spans); n > 0 && spans[n-1].to == id && spans[n-1].hi+1 == lo {
				spans[n-1].hi = hi
			} else {
				spans = append(spans, span{lo, hi, id})
			}
		})
		if len(order) > b.limits.Nodes {
			return nil, overLimit("nodes", b.limits.Nodes, "states of an automaton")
		}
		a.spans = append(a.spans, spans)
		a.accept = append(a.accept, d.Accepting(order[i]))
	}
	if !a.alive() {
		return nil, fmt.Errorf("grammar: an automaton with states that lead to no end")
	}
	return a, nil
}

// alive says that every state leads to an accepting one, or that the start alone is there.
func (a *automaton) alive() bool {
	if len(a.spans) == 1 && len(a.spans[0]) == 0 {
		return true
	}
	back := make([][]int32, len(a.spans))
	var queue []int32
	live := make([]bool, len(a.spans))
	for q, spans := range a.spans {
		for _, s := range spans {
			back[s.to] = append(back[s.to], int32(q))
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
		for _, p := range back[q] {
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
	var out []byte
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
