package tokenizer

import "bytes"

const (
	keyCLS          = "tokenizer.ggml.cls_token_id"
	keySEP          = "tokenizer.ggml.seperator_token_id" // as the format spells it
	keyLower        = "tokenizer.ggml.normalizer.lowercase"
	keyStripAccents = "tokenizer.ggml.normalizer.strip_accents"
	keyAddSEP       = "tokenizer.ggml.add_sep_token"
)

// bert reads a vocabulary of BERT's WordPiece (tokenizer.ggml.model = bert). The format marks tokens that
// begin a word; here, as in BERT's own files, those inside a word are marked.
func (l *ggufLoader) bert() (*Tokenizer, error) {
	const mark = "##"
	l.extra = int64(len(mark))
	var buf []byte
	if err := l.vocabulary(func(id uint32, token []byte) ([]byte, byte, bool) {
		if rest, ok := bytes.CutPrefix(token, []byte(spaceMark)); ok {
			return rest, 0, true
		}
		if len(token) > 1 && token[0] == '[' && token[len(token)-1] == ']' {
			return token, 0, true
		}
		buf = append(append(buf[:0], mark...), token...)
		return buf, 0, true
	}); err != nil {
		return nil, err
	}
	t := l.t
	id := func(key string, or int64) (int32, bool) {
		if value, ok := l.meta.Int(key); ok {
			or = value
		}
		return int32(or), or >= 0 && or < int64(t.Size())
	}
	unk, ok := id(keyUnknown, 100)
	if !ok {
		return nil, formatError("%s is %d, which is not in the vocabulary of %d tokens", keyUnknown, unk, t.Size())
	}
	config := bertConfig{Lower: l.flag(keyLower), Accents: l.flag(keyStripAccents)}
	t.normalizer = config.normalizer()
	t.rawAdded = newMatcher(l.added, func(added) bool { return true })
	if err := t.asBERT(uint32(unk), l.alloc); err != nil {
		return nil, err
	}
	if cls, ok := id(keyCLS, 101); ok && orTrue(l.flag(keyAddBOS)) {
		t.prefix = []int32{cls}
	}
	if sep, ok := id(keySEP, 102); ok && orTrue(l.flag(keyAddSEP)) {
		t.suffix = []int32{sep}
	}
	return t, nil
}

// flag returns a truth value, nil if the file has none.
func (l *ggufLoader) flag(key string) *bool {
	if value, ok := l.meta.Bool(key); ok {
		return &value
	}
	return nil
}
