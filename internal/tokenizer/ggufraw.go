package tokenizer

// rawBPE reads a vocabulary of BPE over characters with byte fallback (tokenizer.ggml.model = gemma4, or a
// pre-tokenizer that says so): spaces are written as marks, and line breaks are cut off, as llama.cpp does.
func (l *ggufLoader) rawBPE(how pre) (addBOS bool, err error) {
	stages, err := stagesOf(how)
	if err != nil {
		return false, err
	}
	l.t.splitter, l.t.normalizer = stages, replace{" ", spaceMark}
	l.t.decoder = chain{swap{old: spaceMark, new: " "}, byteFallback{}, fuse{}}
	m := &charBPE{bytes: newByteTokens(), fuseUnk: true}
	if err := l.vocabulary(func(id uint32, token []byte) ([]byte, byte, bool) {
		b, ok := parseByteToken(token)
		if !ok {
			return token, 0, true
		}
		m.bytes.ids[b] = id
		return token, flagByte, false
	}); err != nil {
		return false, err
	}
	m.vocab = l.t.vocab
	if id, ok := l.meta.Int(keyUnknown); ok && id >= 0 && id < int64(l.t.Size()) {
		m.bytes.unk = uint32(id)
	}
	if m.merges, err = l.readMerges(func(dst, token []byte) []byte { return append(dst, token...) }); err != nil {
		return false, err
	}
	m.apart = m.bytes.all()
	l.t.model = &lineBPE{m}
	l.t.rawAdded = newMatcher(l.added, func(added) bool { return true })
	return how.addBOS, nil
}

// stagesOf makes the splitters of a pre-tokenizer.
func stagesOf(how pre) (splitters, error) {
	var stages splitters
	for _, pattern := range how.patterns {
		stage, err := splitterFor(pattern)
		if err != nil {
			return nil, err
		}
		stages = append(stages, stage)
	}
	return stages, nil
}

// lineBPE takes a run of line breaks that is a token for that token, whatever its merges.
type lineBPE struct{ *charBPE }

func (m *lineBPE) encode(dst []int32, piece string, s *scratch) []int32 {
	if piece != "" && piece[0] == '\n' {
		if id, ok := m.vocab.find(piece); ok {
			return append(dst, int32(id))
		}
	}
	return m.charBPE.encode(dst, piece, s)
}
