package cfg

import (
	"sort"
	"strings"
)

// make is the state from which e and then what k goes on with match. A state k that is not finished
// yet (a loop's) is reached by a move on nothing.
func (c *compiler) make(e Expr, k int32) int32 {
	if c.b.err != nil || !c.live[e] || k == deadState {
		return deadState
	}
	if e == empty {
		return k
	}
	key := uint64(e)<<32 | uint64(uint32(k))
	if q, ok := c.memo[key]; ok {
		return q
	}
	var q int32
	if c.isFrame(e) {
		q = c.add(state{moves: []move{{kind: onCall, x: c.call(e), to: k}}, count: -1})
		if c.null[e] {
			q = c.either(q, k)
		}
	} else {
		q = c.inner(e, k)
	}
	c.memo[key] = q
	return q
}

// isFrame says whether an expression is called, not written out.
func (c *compiler) isFrame(e Expr) bool {
	n := &c.b.nodes[e]
	switch n.kind {
	case kRef: // rules such as that of a character are part of where they are used
		return c.writtenSize(e, 0) >= bigExpr
	case kDFA:
		return true
	case kRepeat:
		return !c.writtenOut(n)
	case kSeq, kAlt:
		return c.uses[e] > 1 && c.size[e] >= bigExpr || c.depth[e] == 0
	}
	return false
}

// writtenSize is the size of an expression with the rules in it written out, or at least bigExpr.
func (c *compiler) writtenSize(e Expr, depth int) int32 {
	const busy = -1
	switch {
	case c.written[e] > 0:
		return c.written[e]
	case c.written[e] == busy || depth > 2*bigExpr || c.size[e] >= bigExpr:
		return bigExpr
	}
	c.written[e] = busy
	n := &c.b.nodes[e]
	size := c.size[e]
	switch {
	case n.kind == kRef:
		size = c.writtenSize(c.b.rules[n.x].body, depth+1)
	case n.hasParts():
		times := int32(1)
		if n.kind == kRepeat {
			times = max(n.x, n.y, 1)
		}
		for _, a := range n.args {
			if part := c.writtenSize(Expr(a), depth+1); part > c.size[a] {
				size = min(size+times*(part-c.size[a]), bigExpr)
			}
		}
	}
	c.written[e] = max(size, 1)
	return c.written[e]
}

// writtenOut says whether a repetition is made of copies of its body.
func (c *compiler) writtenOut(n *node) bool {
	const most = 64
	if n.y < 0 || n.y > most {
		return false
	}
	if n.y <= 3 {
		return true
	}
	return n.x == n.y && c.size[n.args[0]]*n.y <= most
}

// inner is make for an expression that is written out.
func (c *compiler) inner(e Expr, k int32) int32 {
	n := c.b.nodes[e]
	switch n.kind {
	case kEmpty:
		return k
	case kBytes:
		for i := len(n.text) - 1; i >= 0; i-- {
			k = c.step(n.text[i], n.text[i], k)
		}
		return k
	case kByte:
		return c.step(byte(n.x), byte(n.y), k)
	case kRunes:
		var ranges [][2]rune
		for i := 0; i < len(n.args); i += 2 {
			ranges = append(ranges, [2]rune{rune(n.args[i]), rune(n.args[i+1])})
		}
		return c.sequences(utf8Sequences(ranges), k)
	case kToken:
		return c.add(state{moves: []move{{kind: onToken, x: n.x, to: k}}, count: -1})
	case kSeq:
		for i := len(n.args) - 1; i >= 0; i-- {
			k = c.make(Expr(n.args[i]), k)
		}
		return k
	case kAlt:
		return c.alternatives(n.args, k)
	case kRepeat:
		return c.copies(&n, k)
	}
	if n.kind == kRef && !c.isFrame(e) {
		return c.make(c.b.rules[n.x].body, k)
	}
	return c.add(state{moves: []move{{kind: onCall, x: c.call(e), to: k}}, count: -1})
}

func (c *compiler) copies(n *node, k int32) int32 {
	q := k
	for i := n.y - 1; i >= 0; i-- {
		q = c.make(Expr(n.args[0]), q)
		if i >= n.x {
			q = c.either(q, k)
		}
	}
	return q
}

// alternatives shares the beginnings of literals, so that a long list of words is a trie.
func (c *compiler) alternatives(args []uint32, k int32) int32 {
	var words []string
	var all []int32
	for _, a := range args {
		if n := &c.b.nodes[a]; n.kind == kBytes {
			words = append(words, n.text)
			continue
		}
		all = append(all, c.make(Expr(a), k))
	}
	sort.Strings(words)
	if q := c.trie(words, k); q != deadState {
		all = append(all, q)
	}
	return c.either(dedupe(all)...)
}

// dedupe drops dead and repeated states.
func dedupe(all []int32) []int32 {
	seen := map[int32]bool{deadState: true}
	out := all[:0]
	for _, q := range all {
		if !seen[q] {
			seen[q] = true
			out = append(out, q)
		}
	}
	return out
}

// trie is any of the sorted words, then k.
func (c *compiler) trie(words []string, k int32) int32 {
	if len(words) == 1 {
		q := k
		for i := len(words[0]) - 1; i >= 0; i-- {
			q = c.step(words[0][i], words[0][i], q)
		}
		return q
	}
	var all []int32
	for len(words) > 0 {
		if words[0] == "" {
			all, words = append(all, k), words[1:]
			continue
		}
		n := len(sharePrefix(words, words[0][:1]))
		prefix := commonPrefix(words[0], words[n-1])
		rest := make([]string, n)
		for i := range rest {
			rest[i] = words[i][len(prefix):]
		}
		q := c.trie(rest, k)
		for i := len(prefix) - 1; i >= 0; i-- {
			q = c.step(prefix[i], prefix[i], q)
		}
		all, words = append(all, q), words[n:]
	}
	return c.either(all...)
}

// sharePrefix is the sorted words that begin with prefix, from the first on.
func sharePrefix(words []string, prefix string) []string {
	return words[:sort.Search(len(words), func(i int) bool { return !strings.HasPrefix(words[i], prefix) })]
}

func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// sequences is any of the sequences, then k; equal beginnings are shared.
func (c *compiler) sequences(all [][]byteRange, k int32) int32 {
	s := state{count: -1}
	for len(all) > 0 {
		head := all[0][0]
		n := sort.Search(len(all), func(i int) bool { return all[i][0] != head })
		to := k
		if len(all[0]) > 1 {
			rest := make([][]byteRange, n)
			for i := range rest {
				rest[i] = all[i][1:]
			}
			to = c.sequences(rest, k)
		}
		if to != deadState {
			s.moves = append(s.moves, move{kind: onByte, lo: head.lo, hi: head.hi, to: to})
		}
		all = all[n:]
	}
	if len(s.moves) == 0 {
		return deadState
	}
	return c.add(s)
}
