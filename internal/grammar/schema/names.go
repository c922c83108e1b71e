package schema

import (
	"slices"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
)

// exceptNames is an automaton without some of its texts: a tree of these, beside which the automaton
// goes on where a text leaves the tree. For the many names of large objects it is made much faster
// than a product of automata.
type exceptNames struct {
	all  *regular.DFA
	tree []nameNode
}

type nameNode struct {
	at   int        // state of all
	next []nameEdge // by c
	ends bool       // one of the names
}

type nameEdge struct {
	c  byte
	to int
}

// child is the node after c, 0 if there is none.
func (n *nameNode) child(c byte) int {
	for _, e := range n.next {
		if e.c == c {
			return e.to
		}
	}
	return 0
}

// except takes names, spelled as all spells them, out of all, which must be infinite from every state
// on: no state becomes a dead end.
func except(all *regular.DFA, names []string) *exceptNames {
	e := &exceptNames{all: all, tree: []nameNode{{at: all.Start()}}}
	for _, name := range names {
		e.add(name)
	}
	for i := range e.tree {
		slices.SortFunc(e.tree[i].next, func(a, b nameEdge) int { return int(a.c) - int(b.c) })
	}
	return e
}

func (e *exceptNames) add(name string) {
	at := 0
	for i := range len(name) {
		next := e.tree[at].child(name[i])
		if next == 0 {
			state := e.all.Next(e.tree[at].at, name[i])
			if state < 0 {
				return // no text of the automaton
			}
			next = len(e.tree)
			e.tree = append(e.tree, nameNode{at: state})
			e.tree[at].next = append(e.tree[at].next, nameEdge{name[i], next})
		}
		at = next
	}
	e.tree[at].ends = true
}

// Start, Next and Accepting are those of cfg.Automaton.
func (e *exceptNames) Start() int { return 0 }

func (e *exceptNames) Next(state int, c byte) int {
	n := len(e.tree)
	if state < n {
		if next := e.tree[state].child(c); next > 0 {
			return next
		}
		state = e.tree[state].at + n
	}
	next := e.all.Next(state-n, c)
	if next < 0 {
		return next
	}
	return next + n
}

// Edges lists the moves of a state: those of all, cut where the tree goes on.
func (e *exceptNames) Edges(state int, f func(lo, hi byte, to int)) {
	n := len(e.tree)
	if state >= n {
		e.all.Edges(state-n, func(lo, hi byte, to int) { f(lo, hi, to+n) })
		return
	}
	node := &e.tree[state]
	e.all.Edges(node.at, func(lo, hi byte, to int) {
		from := int(lo)
		for _, child := range node.next { // sorted
			c := int(child.c)
			if c < from || c > int(hi) {
				continue
			}
			if from < c {
				f(byte(from), byte(c-1), to+n)
			}
			f(byte(c), byte(c), child.to)
			from = c + 1
		}
		if from <= int(hi) {
			f(byte(from), hi, to+n)
		}
	})
}

func (e *exceptNames) Accepting(state int) bool {
	if n := len(e.tree); state >= n {
		return e.all.Accepting(state - n)
	}
	return e.all.Accepting(e.tree[state].at) && !e.tree[state].ends
}

// anyName is any name but those given, between quotes.
func (c *compiler) anyName(but []string) (cfg.Expr, error) {
	all, err := c.spelledText("canonical text", 0, -1, regular.Canonical)
	if err != nil {
		return 0, err
	}
	spelled := make([]string, len(but))
	for i, name := range but {
		q := Quote(name)
		spelled[i] = q[1 : len(q)-1]
	}
	quote := c.out.Bytes(`"`)
	return c.out.Seq(quote, c.out.DFA(except(all, spelled)), quote), nil
}
