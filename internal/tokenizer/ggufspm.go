package tokenizer

import "strings"

const (
	keyScores      = "tokenizer.ggml.scores"
	keyPrefixSpace = "tokenizer.ggml.add_space_prefix"
	keyUnknown     = "tokenizer.ggml.unknown_token_id"
)

// sentencePiece reads a vocabulary of SentencePiece's BPE (tokenizer.ggml.model = llama).
func (l *ggufLoader) sentencePiece() error {
	prefix, ok := l.meta.Bool(keyPrefixSpace)
	prefix = prefix || !ok
	l.t.splitter = whole{}
	l.t.decoder = spaced{mark: []byte(spaceMark), dropPrefix: prefix}
	l.t.normalizer = replace{" ", spaceMark}
	if prefix {
		l.t.normalizer = normalizers{prepend{spaceMark}, replace{" ", spaceMark}}
	}
	m := &scoredBPE{bytes: newByteTokens()}
	if err := l.vocabulary(func(id uint32, token []byte) ([]byte, byte, bool) {
		b, ok := parseByteToken(token)
		if !ok || l.t.vocab.flags[id] != typeByte {
			return token, 0, true
		}
		m.bytes.ids[b] = id
		return append(token[:0], b), flagByte, false
	}); err != nil {
		return err
	}
	m.vocab = l.t.vocab
	if id, ok := l.meta.Int(keyUnknown); ok && id >= 0 && id < int64(l.t.Size()) {
		m.bytes.unk = uint32(id)
	}
	l.t.model = m
	l.stripAfterPhi3()
	l.t.rawAdded = newMatcher(l.added, func(added) bool { return true })
	return l.readScores(m)
}

func (l *ggufLoader) readScores(m *scoredBPE) error {
	count := l.t.Size()
	scores, err := l.alloc(4 * count)
	if err != nil {
		return err
	}
	m.scores = scores
	i := 0
	for score, err := range l.meta.Floats(keyScores) {
		if err != nil {
			return err
		}
		if i < count {
			m.scores.set(uint32(i), scoreKey(float32(score)))
		}
		i++
	}
	if i != count {
		return formatError("%s has %d entries for %d tokens", keyScores, i, count)
	}
	return nil
}

// stripAfterPhi3 lets Phi-3's control tokens take the white space after them. The original tokenizer.json
// says so; a GGUF file cannot, and llama.cpp goes by the model's name too.
func (l *ggufLoader) stripAfterPhi3() {
	arch, _ := l.meta.String("general.architecture")
	name, _ := l.meta.String("general.name")
	name = strings.ToLower(name)
	if arch != "phi3" && !strings.Contains(name, "phi-3") && !strings.Contains(name, "phi3") {
		return
	}
	for i := range l.added {
		switch l.added[i].text {
		case "<unk>", "<s>", "<|endoftext|>":
		default:
			l.added[i].rstrip = true
		}
	}
}
