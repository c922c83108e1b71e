package grammar

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"github.com/spillway/spillway/internal/mem"
)

// Tokens is what a Vocabulary is made from; a *tokenizer.Tokenizer is one.
type Tokens interface {
	// Size is one more than the largest id.
	Size() int
	// Bytes returns what id stands for inside a text; nothing, or an error, where it stands for no text.
	Bytes(id int32) ([]byte, error)
	// IsSpecial says that id is a control token: never part of a text.
	IsSpecial(id int32) bool
	// ID returns the id of a token by its text.
	ID(token string) (int32, bool)
}

// Alloc returns n zeroed bytes. The caller gives one that leases memory outside the Go heap.
type Alloc func(n int) ([]byte, error)

// Vocabulary is the tokens of a tokenizer as a trie of their bytes. Control tokens are not in it. It is
// safe for concurrent use.
type Vocabulary struct {
	tokens Tokens
	size   int
	nodes  []uint64
	root   [256]uint32 // first node of each first byte, +1
	twins  []twin
	ends   []int32
	bytes  int
	shared sharedMasks
}

// twin is a token with the same bytes as one that is in the trie.
type twin struct{ id, first int32 }

// A node of the trie, in depth-first order: byte, depth from 1 (10 bits), nodes in its subtree with itself
// (23 bits), token + 1 (23 bits). The memory need not be the Go heap's.
const (
	depthShift, depthBits = 8, 10
	skipShift, skipBits   = 18, 23
	tokenShift            = 41

	maxDepth  = 1<<depthBits - 1
	maxNodes  = 1<<skipBits - 1
	maxTokens = 1<<(64-tokenShift) - 1
)

func nodeDepth(v uint64) int    { return int(v>>depthShift) & maxDepth }
func nodeSkip(v uint64) uint32  { return uint32(v>>skipShift) & maxNodes }
func nodeToken(v uint64) uint32 { return uint32(v >> tokenShift) }

// NewVocabulary makes the trie: 8 bytes for each of its nodes, about 2.5 a token. ends are the tokens that
// end an answer; they are control tokens, whatever Tokens says. Tokens of more than 1023 bytes are left out.
// alloc may be nil.
func NewVocabulary(t Tokens, ends []int32, alloc Alloc) (*Vocabulary, error) {
	v := &Vocabulary{tokens: t, size: t.Size(), ends: slices.Clone(ends)}
	slices.Sort(v.ends)
	v.ends = slices.Compact(v.ends)
	if v.size <= 0 || v.size >= maxTokens {
		return nil, fmt.Errorf("grammar: a vocabulary of %d tokens; it can be 1 to %d", v.size, maxTokens-1)
	}
	for _, id := range v.ends {
		if id < 0 || int(id) >= v.size {
			return nil, fmt.Errorf("grammar: end token %d is not in the vocabulary of %d tokens", id, v.size)
		}
	}
	list := v.sorted()
	if alloc == nil {
		alloc = func(n int) ([]byte, error) { return make([]byte, n), nil }
	}
	n := list.countNodes()
	if n > maxNodes {
		return nil, fmt.Errorf("grammar: the vocabulary's trie would have %d nodes; it can have %d", n, maxNodes)
	}
	room, err := alloc(8 * max(n, 1))
	if err != nil {
		return nil, err
	}
	v.nodes = mem.As[uint64](room[:8*n])
	v.bytes = len(room)
	v.fill(list)
	return v, nil
}

// tokenList is tokens and their bytes, sorted by bytes, then id.
type tokenList struct {
	text  []byte
	first []uint32 // by id, of its bytes in text
	ids   []int32
}

func (l *tokenList) of(id int32) []byte { return l.text[l.first[id]:l.first[id+1]] }

func (l *tokenList) Len() int      { return len(l.ids) }
func (l *tokenList) Swap(i, j int) { l.ids[i], l.ids[j] = l.ids[j], l.ids[i] }
func (l *tokenList) Less(i, j int) bool {
	if c := bytes.Compare(l.of(l.ids[i]), l.of(l.ids[j])); c != 0 {
		return c < 0
	}
	return l.ids[i] < l.ids[j]
}

func (v *Vocabulary) sorted() *tokenList {
	l := &tokenList{first: make([]uint32, v.size+1), ids: make([]int32, 0, v.size)}
	for id := range int32(v.size) {
		if !v.Control(id) {
			if b, err := v.tokens.Bytes(id); err == nil && len(b) > 0 && len(b) <= maxDepth {
				l.text = append(l.text, b...)
				l.ids = append(l.ids, id)
			}
		}
		l.first[id+1] = uint32(len(l.text))
	}
	sort.Sort(l)
	return l
}

func (l *tokenList) countNodes() int {
	n := 0
	var last []byte
	for _, id := range l.ids {
		b := l.of(id)
		n += len(b) - shared(last, b)
		last = b
	}
	return n
}

func shared(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (v *Vocabulary) fill(l *tokenList) {
	var path [maxDepth + 1]uint32 // the open node of each depth
	var last []byte
	lastID := int32(-1)
	next := uint32(0)
	shut := func(from, to int) {
		for d := to; d > from; d-- {
			v.nodes[path[d]] |= uint64(next-path[d]) << skipShift
		}
	}
	for _, id := range l.ids {
		b := l.of(id)
		n := shared(last, b)
		if n == len(b) && lastID >= 0 && len(b) == len(last) {
			v.twins = append(v.twins, twin{id, lastID})
			continue
		}
		shut(n, len(last))
		for d := n + 1; d <= len(b); d++ {
			path[d] = next
			if d == 1 {
				v.root[b[0]] = next + 1
			}
			v.nodes[next] = uint64(b[d-1]) | uint64(d)<<depthShift
			next++
		}
		v.nodes[path[len(b)]] |= uint64(id+1) << tokenShift
		last, lastID = b, id
	}
	shut(0, len(last))
}

// alone says that a byte is a token, and none of those that a grammar names.
func (v *Vocabulary) alone(b byte, named []int32) bool {
	root := v.root[b]
	if root == 0 {
		return false
	}
	id := nodeToken(v.nodes[root-1])
	if id == 0 {
		return false
	}
	_, is := slices.BinarySearch(named, int32(id-1))
	return !is
}

// Control says that a token is never part of a text: a control token, or one that ends an answer.
func (v *Vocabulary) Control(id int32) bool {
	_, end := slices.BinarySearch(v.ends, id)
	return end || v.tokens.IsSpecial(id)
}

// Size is one more than the largest id.
func (v *Vocabulary) Size() int { return v.size }

// Words is the length of a mask.
func (v *Vocabulary) Words() int { return (v.size + 63) / 64 }

// Bytes is the memory of the trie.
func (v *Vocabulary) Bytes() int { return v.bytes + 8*len(v.twins) + 4*len(v.ends) }

// Ends are the tokens that end an answer, sorted.
func (v *Vocabulary) Ends() []int32 { return slices.Clone(v.ends) }

func (v *Vocabulary) isEnd(id int32) bool {
	_, ok := slices.BinarySearch(v.ends, id)
	return ok
}

// text is what a token that may be part of a text stands for.
func (v *Vocabulary) text(id int32) ([]byte, bool) {
	if id < 0 || int(id) >= v.size || v.Control(id) {
		return nil, false
	}
	b, err := v.tokens.Bytes(id)
	return b, err == nil && len(b) > 0 && len(b) <= maxDepth
}
