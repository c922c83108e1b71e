package tokenizer

import (
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"
)

// unkPenalty is what an unknown character costs below the least likely token (SentencePiece,
// unigram_model.cc, kUnkPenalty).
const unkPenalty = 10

// f64s is a slice of float64 that may live in any memory.
type f64s []byte

func (a f64s) at(i uint32) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(a[8*int(i):]))
}
func (a f64s) set(i uint32, v float64) {
	binary.LittleEndian.PutUint64(a[8*int(i):], math.Float64bits(v))
}

// unigram cuts text into the tokens whose scores have the largest sum (Kudo, 2018), by Viterbi's algorithm.
// Characters without a token are unknown; unknown ones in a row are one.
type unigram struct {
	lex    *lexicon
	scores f64s // log-probabilities
	unk    float64
	bytes  byteTokens // the tokens for single bytes, and the one for what is unknown
	single bool       // sums are rounded to 32 bits, as SentencePiece has them
}

// node is the best way to a place in the text.
type node struct {
	score float64
	start int32 // of the last token; -1: none yet
	id    uint32
}

func (m *unigram) encode(dst []int32, piece string, s *scratch) []int32 {
	return remembered(dst, m.lex.vocab, piece, s, m)
}

// merge is encode without a look at what is remembered.
func (m *unigram) merge(dst []int32, piece string, s *scratch) []int32 {
	s.nodes = slices.Grow(s.nodes[:0], len(piece)+1)[:len(piece)+1]
	nodes := s.nodes
	for i := range nodes {
		nodes[i] = node{start: -1}
	}
	for at := 0; at < len(piece); {
		size := runeLen(piece[at:])
		if !m.extend(nodes, piece, at, size) {
			m.offer(&nodes[at+size], nodes[at].score+m.unk, at, noToken)
		}
		at += size
	}
	return m.collect(dst, piece, s)
}

// extend offers every token that begins at a place; it reports whether one of them is the character there.
func (m *unigram) extend(nodes []node, piece string, at, size int) (single bool) {
	p, ok := m.lex.root(), true
	for i := at; i < len(piece); i++ {
		if p, ok = m.lex.step(p, piece[i]); !ok {
			count(i - at)
			break
		}
		if id, is := m.lex.token(p); is {
			m.offer(&nodes[i+1], nodes[at].score+m.scores.at(id), at, id)
			single = single || i+1-at == size
		}
	}
	return single
}

// offer makes a way the best one if it is.
func (m *unigram) offer(n *node, score float64, start int, id uint32) {
	if m.single {
		score = float64(float32(score))
	}
	if n.start >= 0 && !(score > n.score) {
		return
	}
	*n = node{score, int32(start), id}
}

// collect appends the tokens of the best way.
func (m *unigram) collect(dst []int32, piece string, s *scratch) []int32 {
	first := len(dst)
	for end := len(piece); end > 0; {
		n := s.nodes[end]
		if !m.unknown(n.id) {
			dst = append(dst, int32(n.id))
			end = int(n.start)
			continue
		}
		start := int(n.start)
		for start > 0 && m.unknown(s.nodes[start].id) {
			start = int(s.nodes[start].start)
		}
		if id, ok := m.lex.find(piece[start:end]); ok {
			dst = append(dst, int32(id))
			end = start
			continue
		}
		s.ids = m.bytes.append(s.ids[:0], piece[start:end])
		for _, id := range slices.Backward(s.ids) {
			dst = append(dst, int32(id))
		}
		end = start
	}
	slices.Reverse(dst[first:])
	return dst
}

// unknown reports whether a node stands for something unknown; a text that writes the unknown token out counts.
func (m *unigram) unknown(id uint32) bool { return id == noToken || id == m.bytes.unk }

// newUnigram makes a model of a vocabulary whose scores and byte tokens are known. Unknown characters
// cost more than the least score of those that counts.
func newUnigram(v *vocab, scores f64s, tokens byteTokens, alloc Alloc, keep, counts func(id uint32) bool) (*unigram, error) {
	lex, err := newLexicon(v, alloc, keep)
	if err != nil {
		return nil, err
	}
	least := math.Inf(1)
	for id := range uint32(v.count()) {
		if v.flags[id] != 0 && counts(id) {
			least = min(least, scores.at(id))
		}
	}
	if math.IsInf(least, 1) {
		least = 0
	}
	return &unigram{lex: lex, scores: scores, unk: least - unkPenalty, bytes: tokens}, nil
}

// runeLen is the number of bytes of the first character, or of a byte that is not UTF-8.
func runeLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
