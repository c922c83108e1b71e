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

// addMerge looks up the tokens of a merge and adds it.
func addMerge(v *vocab, m *merges, left, right []byte) error {
	l, ok := v.find(string(left))
	if !ok {
		return formatError("merge %d: %q is not in the vocabulary", m.count, left)
	}
	r, ok := v.find(string(right))
	if !ok {
		return formatError("merge %d: %q is not in the vocabulary", m.count, right)
	}
	both, ok := v.findPair(left, right)
	if !ok {
		return formatError("merge %d: %q + %q is not in the vocabulary", m.count, left, right)
	}
	return m.add(l, r, both)
}

// cutMerge takes a byte-level merge "a b" apart into the bytes of its parts, in the given buffers.
func cutMerge(both, left, right []byte) ([]byte, []byte, error) {
	at := bytes.IndexByte(both, ' ')
	if at < 0 || bytes.IndexByte(both[at+1:], ' ') >= 0 {
		return left, right, formatError("merge %q is not two tokens with a space between", both)
	}
	var ok bool
	if left, ok = unmapBytes(left[:0], both[:at]); !ok {
		left = append(left, both[:at]...)
	}
	if right, ok = unmapBytes(right[:0], both[at+1:]); !ok {
		right = append(right, both[at+1:]...)
	}
	return left, right, nil
}
