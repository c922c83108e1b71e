package tokenizer

import "slices"

// A model turns one piece of text, as the pre-tokenizer cut it, into ids.
type model interface {
	encode(dst []int32, piece string, s *scratch) []int32
}

// scratch is what an encoding needs while it runs. It is reused.
type scratch struct {
	nodes   []node
	symbols []symbol
	spans   []span
	heap    []uint64
	ids     []uint32
	ranks   []uint32
	pieces  pieceCache
}

// bpe joins neighbouring symbols, lowest rank first, as Sennrich et al. (2016) define it; of equal
// ranks the leftmost goes first.
type bpe struct {
	vocab        *vocab
	merges       *merges
	start        [256]uint32 // the id of each byte, or noToken
	ignoreMerges bool        // a piece that is a token is that token
	whole        wholeTokens
}

// noToken marks a byte that the vocabulary lacks; such bytes are dropped, as Hugging Face does.
const noToken = ^uint32(0)

// smallPiece is the number of symbols up to which scanning all ranks beats a heap.
const smallPiece = 48

func (m *bpe) encode(dst []int32, piece string, s *scratch) []int32 {
	return m.whole.word(dst, m.vocab, piece, s, m, m.ignoreMerges)
}

// merge is encode without a look at the whole piece.
func (m *bpe) merge(dst []int32, piece string, s *scratch) []int32 {
	s.ids = s.ids[:0]
	for i := 0; i < len(piece); i++ {
		if id := m.start[piece[i]]; id != noToken {
			s.ids = append(s.ids, id)
		}
	}
	return mergeSymbols(dst, s, m.merges)
}

// mergeSymbols joins the symbols in s.ids and appends what is left.
func mergeSymbols(dst []int32, s *scratch, table *merges) []int32 {
	if len(s.ids) <= smallPiece {
		return mergeSmall(dst, s, table)
	}
	return mergeLarge(dst, s, table)
}

// mergeSmall keeps the rank of every neighbouring pair and scans for the least: quadratic, so for few
// symbols only.
func mergeSmall(dst []int32, s *scratch, table *merges) []int32 {
	ids, ranks := s.ids, s.ranks[:0]
	for i := 1; i < len(ids); i++ {
		ranks = append(ranks, table.rank(ids[i-1], ids[i]))
	}
	s.ranks = ranks
	count(len(ids))
	for {
		best, at := noRank, 0
		for i, rank := range ranks {
			if rank < best {
				best, at = rank, i
			}
		}
		if best == noRank {
			break
		}
		ids[at] = table.merged(best)
		ids = append(ids[:at+1], ids[at+2:]...)
		ranks = append(ranks[:at], ranks[at+1:]...)
		if at > 0 {
			ranks[at-1] = table.rank(ids[at-1], ids[at])
		}
		if at < len(ranks) {
			ranks[at] = table.rank(ids[at], ids[at+1])
		}
	}
	for _, id := range ids {
		dst = append(dst, int32(id))
	}
	return dst
}

// symbol is a node of the list of symbols of one piece.
type symbol struct {
	id         uint32
	prev, next int32 // -1 at the ends
}

const gone = ^uint32(0) // the id of a symbol that was joined to its left neighbour

// mergeLarge uses a heap of (rank, position): O(n log n). Entries whose pair has changed since are
// told by their rank and skipped. It needs 24 bytes of scratch for each byte of the piece.
func mergeLarge(dst []int32, s *scratch, table *merges) []int32 {
	s.symbols, s.heap = slices.Grow(s.symbols[:0], len(s.ids)), slices.Grow(s.heap[:0], len(s.ids))
	for i, id := range s.ids {
		s.symbols = append(s.symbols, symbol{id, int32(i - 1), int32(i + 1)})
		if i > 0 {
			if rank := table.rank(s.ids[i-1], id); rank != noRank {
				s.heap = append(s.heap, uint64(rank)<<32|uint64(i-1))
			}
		}
	}
	symbols := s.symbols
	symbols[len(symbols)-1].next = -1
	heapify(s.heap)
	tried := 0
	for ; len(s.heap) > 0; tried++ {
		top := s.heap[0]
		s.heap = heapPop(s.heap)
		rank, at := uint32(top>>32), int32(uint32(top))
		left := &symbols[at]
		if left.id == gone || left.next < 0 || table.rank(left.id, symbols[left.next].id) != rank {
			continue
		}
		s.heap = joinNext(symbols, at, table.merged(rank), s.heap, table)
	}
	count(tried)
	for at := int32(0); at >= 0; at = symbols[at].next {
		dst = append(dst, int32(symbols[at].id))
	}
	return dst
}

// joinNext makes the symbol at and its right neighbour one and pushes the pairs that come of it.
func joinNext(symbols []symbol, at int32, id uint32, heap []uint64, table *merges) []uint64 {
	left := &symbols[at]
	right := &symbols[left.next]
	left.id, left.next, right.id = id, right.next, gone
	if left.next >= 0 {
		next := &symbols[left.next]
		next.prev = at
		if rank := table.rank(id, next.id); rank != noRank {
			heap = heapPush(heap, uint64(rank)<<32|uint64(at))
		}
	}
	if left.prev >= 0 {
		if rank := table.rank(symbols[left.prev].id, id); rank != noRank {
			heap = heapPush(heap, uint64(rank)<<32|uint64(left.prev))
		}
	}
	return heap
}

func heapify(h []uint64) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		siftDown(h, i)
	}
}

func heapPush(h []uint64, v uint64) []uint64 {
	h = append(h, v)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2] > v {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = v
	return h
}

func heapPop(h []uint64) []uint64 {
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	if last > 1 {
		siftDown(h, 0)
	}
	return h
}

func siftDown(h []uint64, i int) {
	v := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[child] >= v {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = v
}
