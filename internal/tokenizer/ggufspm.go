package tokenizer

import "strings"

const (
	keyScores      = "tokenizer.ggml.scores"
	keyPrefixSpace = "tokenizer.ggml.add_space_prefix"
	keyUnknown     = "tokenizer.ggml.unknown_token_id"
	keySqueeze     = "tokenizer.ggml.remove_extra_whitespaces"
	keyEscape      = "tokenizer.ggml.escape_whitespaces"
	keySuffix      = "tokenizer.ggml.treat_whitespace_as_suffix"
	keyCharsmap    = "tokenizer.ggml.precompiled_charsmap"
)

// sentencePiece reads a vocabulary of SentencePiece's BPE (tokenizer.ggml.model = llama).
func (l *ggufLoader) sentencePiece() error {
	prefix, ok := l.meta.Bool(keyPrefixSpace)
	prefix = prefix || !ok
	l.t.splitter = whole{}
	l.t.decoder = chain{swap{old: spaceMark, new: " "}, byteFallback{}, fuse{}}
	l.t.normalizer = replace{" ", spaceMark}
	if prefix {
		l.t.decoder = append(l.t.decoder, trim{content: " ", start: 1})
		l.t.normalizer = normalizers{prepend{spaceMark}, replace{" ", spaceMark}}
	}
	tokens, err := l.textVocabulary()
	if err != nil {
		return err
	}
	m := &scoredBPE{vocab: l.t.vocab, bytes: tokens}
	l.t.model = m
	l.stripAfterPhi3()
	l.t.rawAdded = newMatcher(l.added, func(added) bool { return true })
	return l.readScores(m)
}

// textVocabulary reads a vocabulary of text with tokens for single bytes.
func (l *ggufLoader) textVocabulary() (byteTokens, error) {
	tokens := newByteTokens()
	err := l.vocabulary(func(id uint32, token []byte) ([]byte, byte, bool) {
		b, ok := byteOf(token)
		if !ok || l.t.vocab.flags[id] != typeByte {
			return token, 0, true
		}
		tokens.ids[b] = id
		return token, flagByte, false
	})
	if err != nil {
		return tokens, err
	}
	if id, ok := l.meta.Int(keyUnknown); ok && id >= 0 && id < int64(l.t.Size()) {
		tokens.unk = uint32(id)
	}
	return tokens, nil
}

// unigram reads a vocabulary of SentencePiece's unigram model (tokenizer.ggml.model = t5).
func (l *ggufLoader) unigram() error {
	flag := func(key string, or bool) bool {
		if value, ok := l.meta.Bool(key); ok {
			return value
		}
		return or
	}
	n := spmNormalizer{dummy: flag(keyPrefixSpace, false), squeeze: flag(keySqueeze, false), escape: flag(keyEscape, true), suffix: flag(keySuffix, false)}
	var err error
	if n.chars, err = l.readCharsmap(); err != nil {
		return err
	}
	l.t.splitter, l.t.normalizer = whole{}, n
	l.t.decoder = chain{spmPieces{drop: n.dummy || n.squeeze, all: n.squeeze}, byteFallback{}, fuse{}}
	tokens, err := l.textVocabulary()
	if err != nil {
		return err
	}
	scores, err := l.alloc(8 * l.t.Size())
	if err != nil {
		return err
	}
	if err := l.eachScore(func(id uint32, score float64) { f64s(scores).set(id, score) }); err != nil {
		return err
	}
	v := l.t.vocab
	normal := func(id uint32) bool { return v.flags[id] == flagPresent }
	if tokens.unk == noToken && v.has(defaultT5Unknown) {
		tokens.unk = defaultT5Unknown
	}
	if l.t.model, err = newUnigram(v, scores, tokens, l.alloc, normal, normal); err != nil {
		return err
	}
	l.t.rawAdded = newMatcher(l.added, func(added) bool { return true })
	return nil
}

// defaultT5Unknown is T5's unknown token, for files that do not say.
const defaultT5Unknown = 2

func (l *ggufLoader) readCharsmap() (*charsmap, error) {
	count, ok := l.meta.Count(keyCharsmap)
	if !ok || count == 0 {
		return nil, nil
	}
	if count > maxCharsmap {
		return nil, formatError("%s has %d bytes; at most %d are possible", keyCharsmap, count, maxCharsmap)
	}
	b, err := l.alloc(count)
	if err != nil {
		return nil, err
	}
	i := 0
	for c, err := range l.meta.Ints(keyCharsmap) {
		if err != nil {
			return nil, err
		}
		if i < count {
			b[i] = byte(c)
		}
		i++
	}
	return newCharsmap(b)
}

func (l *ggufLoader) readScores(m *scoredBPE) error {
	count := l.t.Size()
	scores, err := l.alloc(4 * count)
	if err != nil {
		return err
	}
	m.scores = scores
	return l.eachScore(func(id uint32, score float64) { m.scores.set(id, scoreKey(float32(score))) })
}

// eachScore reads the scores of all tokens.
func (l *ggufLoader) eachScore(set func(id uint32, score float64)) error {
	count, i := l.t.Size(), 0
	for score, err := range l.meta.Floats(keyScores) {
		if err != nil {
			return err
		}
		if i < count {
			set(uint32(i), score)
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
