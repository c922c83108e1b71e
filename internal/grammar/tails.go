package grammar

import "slices"

// tails is what is left of tokens behind the leaves of a part, as a trie that grows as it is walked: each
// node stands for all nodes of the vocabulary's trie that are reached by the same bytes from where the part
// was left.
type tails struct {
	nodes []tail // the first is where the part is left
}

type tail struct {
	at       []uint32 // nodes of the vocabulary's trie that have others below them
	tokens   []int32  // that end here
	children []int32
	b        byte
	grown    bool
}

// begin makes the first level, of leaves in the order of nodes.
func (t *tails) begin(leaves []leaf, v *Vocabulary) {
	t.nodes = []tail{{grown: true}}
	g := grower{t: t, v: v}
	for i, l := range leaves {
		if i == 0 || l.node != leaves[i-1].node {
			g.add(l.node)
		}
	}
}

// grow finds the children of a node, and returns the memory that they took.
func (t *tails) grow(i int32, v *Vocabulary) int {
	g := grower{t: t, v: v, i: i}
	for _, at := range t.nodes[i].at {
		end := at + nodeSkip(v.nodes[at])
		for j := at + 1; j < end; j += nodeSkip(v.nodes[j]) {
			g.add(j)
		}
	}
	t.nodes[i].grown = true
	t.nodes[i].at = nil
	return g.bytes
}

// grower adds children to the node i.
type grower struct {
	t     *tails
	v     *Vocabulary
	i     int32
	child [256]int32
	bytes int
}

func (g *grower) add(at uint32) {
	n := g.v.nodes[at]
	b := uint8(n)
	if g.child[b] == 0 {
		g.child[b] = int32(len(g.t.nodes))
		g.t.nodes[g.i].children = append(g.t.nodes[g.i].children, g.child[b])
		g.t.nodes = append(g.t.nodes, tail{b: b})
		g.bytes += 96
	}
	to := &g.t.nodes[g.child[b]]
	if id := nodeToken(n); id > 0 {
		to.tokens = append(to.tokens, int32(id-1))
		g.bytes += 4
	}
	if nodeSkip(n) > 1 {
		to.at = append(to.at, at)
		g.bytes += 4
	}
}

// last says that no token goes on from a node.
func (t *tail) last() bool { return len(t.at) == 0 && len(t.children) == 0 }

// sortLeaves orders leaves by node, then count, and drops repeated ones.
func sortLeaves(all []leaf) []leaf {
	slices.SortFunc(all, func(a, b leaf) int {
		if a.node != b.node {
			return int(a.node) - int(b.node)
		}
		return int(a.count) - int(b.count)
	})
	return slices.Compact(all)
}
