package cfg

import "fmt"

// solve returns for which expressions a property holds that base gives to some of them, and that goes
// up: to an alternative from any part, to a sequence from all parts, to a rule from its body.
func (b *Builder) solve(base func(n *node) bool) []bool {
	holds := make([]bool, len(b.nodes))
	missing := make([]int32, len(b.nodes)) // parts of a sequence for which it does not hold yet
	parents, refs := b.parents()
	var queue []Expr
	set := func(e Expr) {
		if !holds[e] {
			holds[e] = true
			queue = append(queue, e)
		}
	}
	for i := range b.nodes {
		n := &b.nodes[i]
		missing[i] = int32(len(n.args))
		if base(n) {
			set(Expr(i))
		}
	}
	for len(queue) > 0 {
		e := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range parents.of(int(e)) {
			missing[p]--
			if b.nodes[p].kind != kSeq || missing[p] == 0 {
				set(Expr(p))
			}
		}
		for _, p := range refs.of(int(e)) {
			set(Expr(p))
		}
	}
	return holds
}

// lists is many lists of numbers in one array.
type lists struct {
	first []int32
	items []int32
}

func (l lists) of(i int) []int32 { return l.items[l.first[i]:l.first[i+1]] }

// makeLists collects pairs (list, item); each is called twice and must give the same pairs.
func makeLists(n int, each func(add func(list, item int))) lists {
	l := lists{first: make([]int32, n+1)}
	each(func(list, _ int) { l.first[list+1]++ })
	for i := range n {
		l.first[i+1] += l.first[i]
	}
	l.items = make([]int32, l.first[n])
	fill := append([]int32(nil), l.first...)
	each(func(list, item int) {
		l.items[fill[list]] = int32(item)
		fill[list]++
	})
	return l
}

// parents lists, for each expression, those that it is a part of, and the references to rules whose
// body it is.
func (b *Builder) parents() (parts, refs lists) {
	parts = makeLists(len(b.nodes), func(add func(list, item int)) {
		for i := range b.nodes {
			if !b.nodes[i].hasParts() {
				continue
			}
			for _, a := range b.nodes[i].args {
				add(int(a), i)
			}
		}
	})
	refs = makeLists(len(b.nodes), func(add func(list, item int)) {
		for i := range b.nodes {
			if n := &b.nodes[i]; n.kind == kRef && b.rules[n.x].defined {
				add(int(b.rules[n.x].body), i)
			}
		}
	})
	return parts, refs
}

func (n *node) hasParts() bool { return n.kind == kSeq || n.kind == kAlt || n.kind == kRepeat }

// nullable says which expressions match the empty text.
func (b *Builder) nullable() []bool {
	return b.solve(func(n *node) bool {
		switch n.kind {
		case kEmpty:
			return true
		case kRepeat:
			return n.x == 0
		case kDFA:
			return b.automata[n.x].accept[0]
		}
		return false
	})
}

// productive says which expressions match any text at all.
func (b *Builder) productive() []bool {
	return b.solve(func(n *node) bool {
		switch n.kind {
		case kNothing, kSeq, kAlt, kRef:
			return false
		case kRepeat:
			return n.x == 0
		}
		return true
	})
}

// check refuses rules that start can reach and that are not defined or match no text.
func (b *Builder) check(start Expr, productive []bool) error {
	seen := make([]bool, len(b.nodes))
	stack := []Expr{start}
	seen[start] = true
	visit := func(e Expr) {
		if !seen[e] {
			seen[e] = true
			stack = append(stack, e)
		}
	}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := &b.nodes[e]
		if n.kind == kRef {
			r := &b.rules[n.x]
			switch {
			case !r.defined:
				return fmt.Errorf("grammar: rule %q is used, but not defined", r.name)
			case !productive[r.body] && r.lenient:
				continue
			case !productive[r.body]:
				return fmt.Errorf("grammar: rule %q matches no text: each way through it needs itself again, or something impossible", r.name)
			}
			visit(r.body)
		}
		if n.hasParts() {
			for _, a := range n.args {
				visit(Expr(a))
			}
		}
	}
	if !productive[start] {
		return fmt.Errorf("grammar: no text matches it")
	}
	return nil
}
