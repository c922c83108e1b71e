package tokenizer

import "bytes"

// newBPE makes a model of a vocabulary of bytes and its merges.
func newBPE(v *vocab, m *merges, ignoreMerges bool) *bpe {
	model := &bpe{vocab: v, merges: m, ignoreMerges: ignoreMerges}
	for b := range model.start {
		model.start[b] = noToken
		if id, ok := v.find(string([]byte{byte(b)})); ok {
			model.start[b] = id
		}
	}
	return model
}

// addMerge looks up the tokens of a merge and adds it. The token on the right loses a mark of that many
// bytes, which says that it is inside a word.
func addMerge(v *vocab, m *merges, left, right []byte, mark int) error {
	l, ok := v.find(string(left))
	if !ok {
		return formatError("merge %d: %q is not in the vocabulary", m.count, left)
	}
	r, ok := v.find(string(right))
	if !ok {
		return formatError("merge %d: %q is not in the vocabulary", m.count, right)
	}
	both, ok := v.findPair(left, right[min(mark, len(right)):])
	if !ok {
		return formatError("merge %d: %q + %q is not in the vocabulary", m.count, left, right)
	}
	return m.add(l, r, both)
}

// cutMerge takes a merge "a b" apart. Tokens have no spaces: they write another character for them.
func cutMerge(both []byte) (left, right []byte, err error) {
	at := bytes.IndexByte(both, ' ')
	if at < 0 || bytes.IndexByte(both[at+1:], ' ') >= 0 {
		return nil, nil, formatError("merge %q is not two tokens with a space between", both)
	}
	return both[:at], both[at+1:], nil
}
