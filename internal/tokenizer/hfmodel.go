package tokenizer

// makeModel makes the model of tokenizer.json; the vocabulary is there.
func (l *hfLoader) makeModel() (model, error) {
	m := &l.file.model
	unk := noToken
	if id, ok := l.vocab.find(m.unk); ok && m.unk != "" {
		unk = id
	}
	switch m.kind {
	case "Unigram":
		return l.makeUnigram()
	case "WordPiece":
		most := 100
		if m.maxChars != nil {
			most = max(*m.maxChars, 0)
		}
		return newWordPiece(l.vocab, l.alloc, m.prefix, most, unk, l.ofModel)
	case "WordLevel":
		return &wordLevel{l.vocab, unk}, nil
	}
	return l.makeBPE(unk), nil
}

// ofModel reports whether an id is of the model's vocabulary; others are of added tokens only.
func (l *hfLoader) ofModel(id uint32) bool {
	got, ok := l.vocab.find(string(l.vocab.bytes(id)))
	return ok && (got == id || l.vocab.flags[id]&flagAdded == 0)
}

func (l *hfLoader) makeBPE(unk uint32) model {
	m := &l.file.model
	if !l.raw {
		b := newBPE(l.vocab, l.merge, m.ignoreMerges)
		for i, id := range b.start {
			if id == noToken {
				b.start[i] = unk
			}
		}
		return b
	}
	l.chars.bytes.unk = unk
	if m.prefix != "" || m.suffix != "" {
		return &affixBPE{vocab: l.vocab, merges: l.merge, bytes: l.chars.bytes, prefix: m.prefix, suffix: m.suffix, fuseUnk: m.fuseUnk, ignoreMerges: m.ignoreMerges}
	}
	l.chars.vocab, l.chars.merges = l.vocab, l.merge
	l.chars.fuseUnk, l.chars.ignoreMerges = m.fuseUnk, m.ignoreMerges
	l.chars.apart = !m.fuseUnk || l.chars.bytes.all()
	return l.chars
}

func (l *hfLoader) makeUnigram() (model, error) {
	m := &l.file.model
	if m.unkID != nil {
		if int64(*m.unkID) >= int64(m.tokens) {
			return nil, formatError("unk_id is %d, of %d tokens", *m.unkID, m.tokens)
		}
		l.chars.bytes.unk = *m.unkID
	}
	listed := func(id uint32) bool { return int64(id) < int64(m.tokens) }
	return newUnigram(l.vocab, l.scores, l.chars.bytes, l.alloc, listed, listed)
}
