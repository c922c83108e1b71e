package tokenizer

// rankBPE is tiktoken's BPE: of all neighbours whose bytes together are a token, those with the lowest id
// become one first, the leftmost of equals.
type rankBPE struct {
	vocab *vocab
	slow  *scoredBPE // for long pieces
}

func newRankBPE(v *vocab, alloc Alloc) (*rankBPE, error) {
	keys, err := alloc(4 * v.count())
	if err != nil {
		return nil, err
	}
	m := &rankBPE{vocab: v, slow: &scoredBPE{vocab: v, scores: keys, bytes: newByteTokens(), single: true}}
	for id := range uint32(v.count()) {
		m.slow.scores.set(id, id)
	}
	return m, nil
}

func (m *rankBPE) encode(dst []int32, piece string, s *scratch) []int32 {
	if id, ok := m.vocab.find(piece); ok {
		return append(dst, int32(id))
	}
	if len(piece) > smallPiece {
		return m.slow.merge(dst, piece, s)
	}
	return m.small(dst, piece)
}

// part is a symbol of a short piece: where it begins, and the token that it makes with the next.
type part struct {
	start int32
	pair  uint32
}

// small joins the parts of a short piece, scanning for the least pair each time.
func (m *rankBPE) small(dst []int32, piece string) []int32 {
	var buf [smallPiece + 1]part
	parts := buf[:len(piece)+1]
	for i := range parts {
		parts[i] = part{int32(i), noToken}
		if i+2 <= len(piece) {
			parts[i].pair = m.id(piece[i : i+2])
		}
	}
	for {
		best, at := noToken, 0
		for i, p := range parts {
			if p.pair < best {
				best, at = p.pair, i
			}
		}
		if best == noToken {
			break
		}
		parts = append(parts[:at+1], parts[at+2:]...)
		parts[at].pair = m.pair(piece, parts, at)
		if at > 0 {
			parts[at-1].pair = m.pair(piece, parts, at-1)
		}
	}
	for i := range parts[:len(parts)-1] {
		if id := m.id(piece[parts[i].start:parts[i+1].start]); id != noToken {
			dst = append(dst, int32(id))
		}
	}
	return dst
}

// pair returns the token that a part and the next make, or noToken.
func (m *rankBPE) pair(piece string, parts []part, at int) uint32 {
	if at+2 >= len(parts) {
		return noToken
	}
	return m.id(piece[parts[at].start:parts[at+2].start])
}

func (m *rankBPE) id(text string) uint32 {
	if id, ok := m.vocab.find(text); ok {
		return id
	}
	return noToken
}
