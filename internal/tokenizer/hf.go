package tokenizer

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spillway/spillway/internal/checkpoint/jsonscan"
	"github.com/spillway/spillway/internal/vfs"
)

const (
	// maxSection bounds a part of tokenizer.json that is no vocabulary, in bytes.
	maxSection = 1 << 20
	// maxText bounds a string, in bytes.
	maxText = 1 << 20
)

// hfFile is what a first pass over tokenizer.json finds: everything but the vocabulary.
type hfFile struct {
	normalizer, preTokenizer, postProcessor, decoder section
	added                                            []added
	model                                            hfModel
}

// hfModel is the model's settings and the sizes of its tables.
type hfModel struct {
	kind         string
	unk          string
	byteFallback bool
	fuseUnk      bool
	ignoreMerges bool
	prefix       string // of tokens inside a word
	suffix       string // of tokens at a word's end
	maxChars     *int   // of a word
	unkID        *uint32
	listed       bool  // the vocabulary is a list with scores
	tokens       int   // entries of the vocabulary
	tokenBytes   int64 // their bytes, as written
	maxID        uint32
	merges       int
}

// hfConfig is the part of tokenizer_config.json that matters here.
type hfConfig struct {
	AddBOS, AddEOS *bool
	BOS, EOS       tokenName
}

// tokenName is a token given as a string or as an object with its content.
type tokenName string

func (t *tokenName) UnmarshalJSON(b []byte) error {
	var object struct {
		Content string `json:"content"`
	}
	if len(b) > 0 && b[0] == '{' {
		err := json.Unmarshal(b, &object)
		*t = tokenName(object.Content)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

// loadHF reads tokenizer.json, and tokenizer_config.json if it is there.
func loadHF(open vfs.Opener, alloc Alloc) (*Tokenizer, error) {
	var config hfConfig
	if _, err := open.Stream("tokenizer_config.json", config.read); err != nil {
		return nil, err
	}
	l := &hfLoader{open: open, alloc: alloc}
	if err := l.pass(l.survey); err != nil {
		return nil, err
	}
	return l.build(&config)
}

// read reads tokenizer_config.json; most of it (a list of added tokens, a chat template) is skipped.
func (c *hfConfig) read(r io.Reader) error {
	s := jsonscan.New(r, maxText)
	return s.Object(func(key []byte) error {
		return decodeMember(s, key, map[string]any{"add_bos_token": &c.AddBOS, "add_eos_token": &c.AddEOS, "bos_token": &c.BOS, "eos_token": &c.EOS})
	})
}

// decodeMember reads a member that has a place, and skips any other.
func decodeMember(s *jsonscan.Scanner, key []byte, places map[string]any) error {
	if into, ok := places[string(key)]; ok {
		return s.Decode(into, maxSection)
	}
	return s.Skip()
}

// readID reads the id of a token.
func readID(s *jsonscan.Scanner) (uint32, error) {
	id, err := s.Uint()
	if err == nil && id > math.MaxUint32 {
		err = formatError("token id %d is too large", id)
	}
	return uint32(id), err
}

// hfLoader reads tokenizer.json twice: for the sizes, and for the vocabulary and the merges, so that
// nothing larger than a buffer is held besides the tables.
type hfLoader struct {
	open   vfs.Opener
	source *gpt2Files // instead of tokenizer.json
	alloc  Alloc
	file   hfFile
	vocab  *vocab
	merge  *merges
	scores f64s
	bytes  []byte // scratch: a token's bytes
	left   []byte // scratch: the left part of a merge
	raw    bool   // not byte-level: tokens are text
	chars  *charBPE

	haveVocab bool
}

func (l *hfLoader) pass(member func(s *jsonscan.Scanner, key []byte) error) error {
	stream := func(read func(io.Reader) error) (bool, error) { return l.open.Stream("tokenizer.json", read) }
	if l.source != nil {
		stream = l.source.stream
	}
	there, err := stream(func(r io.Reader) error {
		s := jsonscan.New(r, maxText)
		if err := s.Object(func(key []byte) error { return member(s, key) }); err != nil {
			return err
		}
		return s.End()
	})
	if err == nil && !there {
		err = &FormatError{What: "the folder has no tokenizer.json", Hint: "it belongs beside the weights"}
	}
	return err
}

// survey is the first pass.
func (l *hfLoader) survey(s *jsonscan.Scanner, key []byte) error {
	f := &l.file
	switch string(key) {
	case "added_tokens":
		return s.Array(func() error { return l.surveyAdded(s) })
	case "model":
		return s.Object(func(key []byte) error { return l.surveyModel(s, key) })
	}
	return decodeMember(s, key, map[string]any{
		"normalizer": &f.normalizer, "pre_tokenizer": &f.preTokenizer, "post_processor": &f.postProcessor, "decoder": &f.decoder,
	})
}

// hfAdded is an added token as the files have it.
type hfAdded struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

func (l *hfLoader) surveyAdded(s *jsonscan.Scanner) error {
	var token hfAdded
	if err := s.Decode(&token, maxSection); err != nil {
		return err
	}
	return l.noteAdded(token)
}

// noteAdded keeps an added token until the vocabulary is there.
func (l *hfLoader) noteAdded(token hfAdded) error {
	if token.ID >= maxTokens || len(l.file.added) >= maxTokens {
		return formatError("added token id %d is too large", token.ID)
	}
	l.file.added = append(l.file.added, added{text: token.Content, id: int32(token.ID), special: token.Special,
		lstrip: token.LStrip, rstrip: token.RStrip, singleWord: token.SingleWord, normalized: token.Normalized})
	return nil
}

func (l *hfLoader) surveyModel(s *jsonscan.Scanner, key []byte) error {
	m := &l.file.model
	switch string(key) {
	case "vocab":
		return l.surveyVocab(s)
	case "merges":
		return s.Array(func() error { m.merges++; return s.Skip() })
	}
	return decodeMember(s, key, map[string]any{
		"type": &m.kind, "unk_token": &m.unk, "byte_fallback": &m.byteFallback, "fuse_unk": &m.fuseUnk, "ignore_merges": &m.ignoreMerges,
		"continuing_subword_prefix": &m.prefix, "end_of_word_suffix": &m.suffix, "max_input_chars_per_word": &m.maxChars, "unk_id": &m.unkID,
	})
}

func (l *hfLoader) surveyVocab(s *jsonscan.Scanner) error {
	m := &l.file.model
	c, err := s.Peek()
	if err != nil {
		return err
	}
	if m.listed = c == '['; m.listed {
		return s.Array(func() error { return l.surveyPiece(s) })
	}
	return s.Object(func(key []byte) error {
		m.tokens++
		m.tokenBytes += int64(len(key))
		id, err := readID(s)
		m.maxID = max(m.maxID, id)
		return err
	})
}

// surveyPiece reads a token with its score, written ["▁the", -3.5].
func (l *hfLoader) surveyPiece(s *jsonscan.Scanner) error {
	m := &l.file.model
	if m.tokens >= maxTokens {
		return formatError("the vocabulary has more than %d tokens", maxTokens)
	}
	m.maxID = uint32(m.tokens)
	m.tokens++
	_, err := readPiece(s, func(token []byte) { m.tokenBytes += int64(len(token)) })
	return err
}

// readPiece reads a token with its score.
func readPiece(s *jsonscan.Scanner, token func([]byte)) (score float64, err error) {
	part := 0
	err = s.Array(func() error {
		if part++; part == 1 {
			text, err := s.Text()
			token(text)
			return err
		}
		score, err = s.Float()
		return err
	})
	if err == nil && part != 2 {
		err = formatError("a token with its score has %d parts instead of 2", part)
	}
	return score, err
}

// build checks what the survey found and reads the tables.
func (l *hfLoader) build(config *hfConfig) (*Tokenizer, error) {
	f := &l.file
	f.model.guessKind()
	switch m := f.model; {
	case m.kind != "BPE" && m.kind != "Unigram" && m.kind != "WordPiece" && m.kind != "WordLevel":
		return nil, unsupported("model", m.kind)
	case m.tokens > 0 && m.listed != (m.kind == "Unigram"):
		return nil, formatError("the vocabulary of a %s model is written as that of another kind", m.kind)
	}
	t := &Tokenizer{bos: -1, eot: -1}
	if err := l.stages(t); err != nil {
		return nil, err
	}
	if err := l.tables(t); err != nil {
		return nil, err
	}
	raw := func(a added) bool { return !a.normalized }
	t.rawAdded = newMatcher(f.added, raw)
	inNormal, err := normalizedTokens(f.added, t.normalizer)
	if err != nil {
		return nil, err
	}
	t.normAdded = newMatcher(inNormal, func(a added) bool { return a.normalized })
	for i, a := range inNormal { // the library decodes them to what it looks for
		if a.text != f.added[i].text {
			if t.shown == nil {
				t.shown = map[int32]string{}
			}
			t.shown[a.id] = a.text
		}
	}
	return t, l.ends(t, config)
}

// guessKind is for older files, which do not say what the model is.
func (m *hfModel) guessKind() {
	switch {
	case m.kind != "" || m.tokens == 0:
	case m.listed:
		m.kind = "Unigram"
	case m.merges > 0:
		m.kind = "BPE"
	case m.maxChars != nil:
		m.kind = "WordPiece"
	}
}

// normalizedTokens normalizes the texts of added tokens that are looked for in normalized text.
func normalizedTokens(tokens []added, n normalizer) ([]added, error) {
	if n == nil {
		return tokens, nil
	}
	tokens = slices.Clone(tokens)
	for i, a := range tokens {
		if !a.normalized {
			continue
		}
		var err error
		if tokens[i].text, err = normalizedTo(n, a.text, len(a.text)+maxTokenBytes); err != nil {
			return nil, fmt.Errorf("added token %.50q: %w", a.text, err)
		}
	}
	return tokens, nil
}

// tables reads vocabulary and merges.
func (l *hfLoader) tables(t *Tokenizer) error {
	m := &l.file.model
	count, bytes := m.tokens+len(l.file.added), m.tokenBytes
	top := m.maxID
	for _, a := range l.file.added {
		top = max(top, uint32(a.id))
		bytes += int64(len(a.text))
	}
	if int64(top) > 4*int64(count)+1<<16 {
		return formatError("token id %d is far above the number of tokens, %d", top, count)
	}
	var err error
	if l.vocab, err = newVocab(int(top)+1, bytes, l.alloc); err != nil {
		return err
	}
	if m.kind == "Unigram" {
		if l.scores, err = l.alloc(8 * (int(top) + 1)); err != nil {
			return err
		}
	}
	if l.merge, err = newMerges(m.merges, l.alloc); err != nil {
		return err
	}
	if err := l.pass(inModel(l.readTable)); err != nil {
		return err
	}
	if m.merges > 0 && l.merge.count == 0 { // they came before the vocabulary
		if err := l.pass(inModel(l.readTable)); err != nil {
			return err
		}
	}
	t.vocab = l.vocab
	t.model, err = l.makeModel()
	return err
}

// inModel makes a pass that reads members of the model.
func inModel(read func(s *jsonscan.Scanner, key []byte) error) func(*jsonscan.Scanner, []byte) error {
	return func(s *jsonscan.Scanner, key []byte) error {
		if string(key) != "model" {
			return s.Skip()
		}
		return s.Object(func(key []byte) error { return read(s, key) })
	}
}

// readTable reads the vocabulary, once, and the merges if the vocabulary is there.
func (l *hfLoader) readTable(s *jsonscan.Scanner, key []byte) error {
	switch {
	case string(key) == "vocab" && !l.haveVocab:
		if err := l.readVocab(s); err != nil {
			return err
		}
		l.haveVocab = true
		return l.addAdded()
	case string(key) == "merges" && l.haveVocab && l.file.model.kind == "BPE":
		return l.readMerges(s)
	}
	return s.Skip()
}

func (l *hfLoader) readVocab(s *jsonscan.Scanner) error {
	if l.file.model.kind == "Unigram" {
		id := uint32(0)
		return s.Array(func() error {
			score, err := readPiece(s, func(token []byte) { l.bytes = append(l.bytes[:0], token...) })
			if err == nil {
				err = l.setToken(id, l.bytes, true)
			}
			if err == nil {
				l.scores.set(id, score)
			}
			id++
			return err
		})
	}
	return s.Object(func(key []byte) error {
		token, ok := l.unmap(key)
		id, err := readID(s)
		if err != nil {
			return err
		}
		return l.setToken(id, token, ok)
	})
}

// setToken adds a token; findable says that text can become it.
func (l *hfLoader) setToken(id uint32, token []byte, findable bool) error {
	flags := byte(0)
	if l.raw {
		if _, is := byteOf(token); is && l.file.decoder.has("ByteFallback") {
			flags = flagByte
		}
		if b, is := parseByteToken(token); is && l.file.model.byteFallback {
			l.chars.bytes.ids[b] = id
		}
	}
	if err := l.vocab.set(id, token, flags); err != nil {
		return err
	}
	if findable {
		l.vocab.put(id)
	}
	return nil
}

// unmap returns a copy of what a token stands for; it is false if no text can become this token.
func (l *hfLoader) unmap(token []byte) ([]byte, bool) {
	var ok bool
	if l.bytes, ok = unmapBytes(l.bytes[:0], token); !ok || l.raw {
		l.bytes = append(l.bytes[:0], token...)
	}
	return l.bytes, ok || l.raw
}

// addAdded gives added tokens their text and marks; many of them are in the vocabulary already.
func (l *hfLoader) addAdded() error {
	for _, a := range l.file.added {
		flags := byte(flagAdded)
		if a.special {
			flags |= flagSpecial
		}
		id := uint32(a.id)
		if l.vocab.has(a.id) {
			l.vocab.flags[id] |= flags
			continue
		}
		token, _ := l.unmap([]byte(a.text))
		if err := l.vocab.set(id, token, flags); err != nil {
			return err
		}
	}
	return nil
}

func (l *hfLoader) readMerges(s *jsonscan.Scanner) error {
	return s.Array(func() error {
		left, right, err := l.mergeParts(s)
		if err != nil {
			return err
		}
		return addMerge(l.vocab, l.merge, left, right, len(l.file.model.prefix))
	})
}

// mergeParts reads a merge as ["a", "b"] or, in older files, as "a b".
func (l *hfLoader) mergeParts(s *jsonscan.Scanner) (left, right []byte, err error) {
	c, err := s.Peek()
	if err != nil {
		return nil, nil, err
	}
	if c == '"' {
		both, err := s.Text()
		if err != nil {
			return nil, nil, err
		}
		return l.splitMerge(both)
	}
	part := 0
	err = s.Array(func() error {
		text, err := s.Text()
		if err != nil {
			return err
		}
		if part++; part == 1 {
			token, _ := l.unmap(text)
			l.left = append(l.left[:0], token...)
			return nil
		}
		right, _ = l.unmap(text)
		return nil
	})
	if err == nil && part != 2 {
		err = formatError("a merge has %d parts instead of 2", part)
	}
	return l.left, right, err
}

// splitMerge takes "a b" apart.
func (l *hfLoader) splitMerge(both []byte) (left, right []byte, err error) {
	first, second, err := cutMerge(both)
	if err != nil {
		return nil, nil, err
	}
	token, _ := l.unmap(first)
	l.left = append(l.left[:0], token...)
	right, _ = l.unmap(second)
	return l.left, right, nil
}
