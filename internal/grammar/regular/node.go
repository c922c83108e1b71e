package regular

// A node is a part of a regular expression.
type node struct {
	kind     kind
	set      runes
	subs     []*node
	dfa      *DFA
	min, max int  // of a repetition; max < 0: no end
	negative bool // of a look-ahead
	at       int  // offset in the pattern
}

type kind uint8

const (
	kindSequence kind = iota // of subs; none: the empty text
	kindSet
	kindEither // of subs
	kindRepeat
	kindStart       // ^
	kindEnd         // $
	kindBoundary    // \b
	kindNotBoundary // \B
	kindAhead       // (?= (?!
	kindBehind      // (?<= (?<!
	kindBackReference
	kindDFA
)

func sequence(subs ...*node) *node { return &node{kind: kindSequence, subs: subs} }
func either(subs ...*node) *node   { return &node{kind: kindEither, subs: subs} }
func setNode(r runes) *node        { return &node{kind: kindSet, set: r} }
func dfaNode(d *DFA) *node         { return &node{kind: kindDFA, dfa: d} }

func repeat(n *node, least, most int) *node {
	return &node{kind: kindRepeat, subs: []*node{n}, min: least, max: most}
}

// anything is any text.
func anything() *node { return repeat(setNode(allRunes), 0, -1) }

// find gives the first node for which f holds, in the order of the pattern.
func (n *node) find(f func(*node) bool) *node {
	if f(n) {
		return n
	}
	for _, s := range n.subs {
		if found := s.find(f); found != nil {
			return found
		}
	}
	return nil
}
