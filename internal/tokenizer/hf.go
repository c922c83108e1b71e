package tokenizer

import (
	"encoding/json"
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

// section is a normalizer, pre-tokenizer, post-processor or decoder as tokenizer.json has it.
type section struct {
	Type          string    `json:"type"`
	Normalizers   []section `json:"normalizers"`
	Pretokenizers []section `json:"pretokenizers"`
	Processors    []section `json:"processors"`
	Decoders      []section `json:"decoders"`
	Pattern       *struct {
		String *string `json:"String"`
		Regex  *string `json:"Regex"`
	} `json:"pattern"`
	Behavior         string `json:"behavior"`
	Invert           bool   `json:"invert"`
	AddPrefixSpace   *bool  `json:"add_prefix_space"`
	UseRegex         *bool  `json:"use_regex"`
	Split            *bool  `json:"split"`
	Replacement      string `json:"replacement"`
	PrependScheme    string `json:"prepend_scheme"`
	IndividualDigits bool   `json:"individual_digits"`
	Prepend          string `json:"prepend"`
	Content          string `json:"content"`
	Start            int    `json:"start"`
	Stop             int    `json:"stop"`
	Single           []struct {
		SpecialToken *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
	SpecialTokens map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
	Cls []json.RawMessage `json:"cls"`
	Sep []json.RawMessage `json:"sep"`
}

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

// hfLoader reads tokenizer.json three times: for the sizes, the vocabulary and the merges, so that
// nothing larger than a buffer is held besides the tables.
type hfLoader struct {
	open  vfs.Opener
	alloc Alloc
	file  hfFile
	vocab *vocab
	merge *merges
	bytes []byte // scratch: a token's bytes
	left  []byte // scratch: the left part of a merge
	raw   bool   // not byte-level: tokens are text
	chars *charBPE
}

func (l *hfLoader) pass(member func(s *jsonscan.Scanner, key []byte) error) error {
	there, err := l.open.Stream("tokenizer.json", func(r io.Reader) error {
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

func (l *hfLoader) surveyAdded(s *jsonscan.Scanner) error {
	var token struct {
		ID         uint32 `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
		Special    bool   `json:"special"`
	}
	if err := s.Decode(&token, maxSection); err != nil {
		return err
	}
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
	case "continuing_subword_prefix", "end_of_word_suffix":
		return l.surveyAffix(s, string(key))
	case "vocab":
		return l.surveyVocab(s)
	case "merges":
		return s.Array(func() error { m.merges++; return s.Skip() })
	}
	return decodeMember(s, key, map[string]any{
		"type": &m.kind, "unk_token": &m.unk, "byte_fallback": &m.byteFallback, "fuse_unk": &m.fuseUnk, "ignore_merges": &m.ignoreMerges,
	})
}

// surveyAffix refuses marks on parts of words, which only old word-level BPE has.
func (l *hfLoader) surveyAffix(s *jsonscan.Scanner, key string) error {
	var affix string
	if err := s.Decode(&affix, maxSection); err != nil {
		return err
	}
	if affix != "" && l.file.model.kind != "WordPiece" {
		return unsupported("model", "BPE with "+key)
	}
	return nil
}

func (l *hfLoader) surveyVocab(s *jsonscan.Scanner) error {
	if c, err := s.Peek(); err != nil || c != '{' {
		return s.Skip() // Unigram has a list; the model's type is refused later
	}
	m := &l.file.model
	return s.Object(func(key []byte) error {
		m.tokens++
		m.tokenBytes += int64(len(key))
		id, err := readID(s)
		m.maxID = max(m.maxID, id)
		return err
	})
}

// build checks what the survey found and reads the tables.
func (l *hfLoader) build(config *hfConfig) (*Tokenizer, error) {
	f := &l.file
	if f.model.kind == "" && f.model.tokens > 0 && f.model.merges > 0 {
		f.model.kind = "BPE" // older files do not say
	}
	if f.model.kind != "BPE" {
		return nil, unsupported("model", f.model.kind)
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
	t.normAdded = newMatcher(normalizedTokens(f.added, t.normalizer), func(a added) bool { return a.normalized })
	return t, l.ends(t, config)
}

// normalizedTokens normalizes the texts of added tokens that are looked for in normalized text.
func normalizedTokens(tokens []added, n normalizer) []added {
	if n == nil {
		return tokens
	}
	tokens = slices.Clone(tokens)
	for i := range tokens {
		if tokens[i].normalized {
			tokens[i].text = n.normalize(tokens[i].text)
		}
	}
	return tokens
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
	if l.merge, err = newMerges(m.merges, l.alloc); err != nil {
		return err
	}
	if err := l.pass(inModel("vocab", l.readVocab)); err != nil {
		return err
	}
	if err := l.addAdded(); err != nil {
		return err
	}
	if err := l.pass(inModel("merges", l.readMerges)); err != nil {
		return err
	}
	t.vocab = l.vocab
	if !l.raw {
		t.model = newBPE(l.vocab, l.merge, m.ignoreMerges)
		return nil
	}
	l.chars.vocab, l.chars.merges = l.vocab, l.merge
	l.chars.fuseUnk, l.chars.ignoreMerges = m.fuseUnk, m.ignoreMerges
	if id, ok := l.vocab.find(m.unk); ok && m.unk != "" {
		l.chars.bytes.unk = id
	}
	t.model = l.chars
	return nil
}

// inModel makes a pass that reads one member of the model.
func inModel(name string, read func(*jsonscan.Scanner) error) func(*jsonscan.Scanner, []byte) error {
	return func(s *jsonscan.Scanner, key []byte) error {
		if string(key) != "model" {
			return s.Skip()
		}
		return s.Object(func(key []byte) error {
			if string(key) != name {
				return s.Skip()
			}
			return read(s)
		})
	}
}

func (l *hfLoader) readVocab(s *jsonscan.Scanner) error {
	return s.Object(func(key []byte) error {
		token, ok := l.unmap(key)
		id, err := readID(s)
		if err != nil {
			return err
		}
		flags := byte(0)
		if l.raw && l.file.model.byteFallback {
			if b, is := parseByteToken(token); is {
				token, flags, ok = append(token[:0], b), flagByte, false
				l.chars.bytes.ids[b] = id
			}
		}
		if err := l.vocab.set(id, token, flags); err != nil {
			return err
		}
		if ok {
			l.vocab.put(id)
		}
		return nil
	})
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
		return addMerge(l.vocab, l.merge, left, right)
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
