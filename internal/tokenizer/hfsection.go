package tokenizer

import "encoding/json"

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
	Cls                 tokenPair `json:"cls"`
	Sep                 tokenPair `json:"sep"`
	CleanText           *bool     `json:"clean_text"`
	HandleChineseChars  *bool     `json:"handle_chinese_chars"`
	StripAccents        *bool     `json:"strip_accents"`
	Lowercase           *bool     `json:"lowercase"`
	StripLeft           *bool     `json:"strip_left"`
	StripRight          *bool     `json:"strip_right"`
	PrecompiledCharsmap string    `json:"precompiled_charsmap"`
	Delimiter           string    `json:"delimiter"`
	Length              int       `json:"length"`
	Prefix              string    `json:"prefix"`
	Suffix              string    `json:"suffix"`
	Cleanup             *bool     `json:"cleanup"`
	PadToken            string    `json:"pad_token"`
	WordDelimiterToken  string    `json:"word_delimiter_token"`
}

// tokenPair is a token with its id, written ["[CLS]", 101].
type tokenPair struct{ value *int32 }

func (p *tokenPair) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil || len(parts) != 2 {
		return err
	}
	return json.Unmarshal(parts[1], &p.value)
}

// id returns the id, which must be of the vocabulary.
func (p tokenPair) id(t *Tokenizer) (int32, error) {
	if p.value == nil {
		return 0, formatError("the post-processor lacks the id of a token that it adds")
	}
	if err := t.vocab.check(*p.value); err != nil {
		return 0, formatError("the post-processor: %v", err)
	}
	return *p.value, nil
}

// flat returns the parts of a section without sequences.
func (s section) flat() []section {
	switch s.Type {
	case "":
		return nil
	case "Sequence":
		var all []section
		for _, list := range [][]section{s.Normalizers, s.Pretokenizers, s.Processors, s.Decoders} {
			for _, part := range list {
				all = append(all, part.flat()...)
			}
		}
		return all
	}
	return []section{s}
}

func (s section) has(kind string) bool {
	for _, part := range s.flat() {
		if part.Type == kind {
			return true
		}
	}
	return false
}

// growth is how many times longer a decoder's stage may make a token.
func (s section) growth() int {
	if s.Type != "Replace" {
		return 1
	}
	match := 1
	if s.Pattern != nil && s.Pattern.String != nil {
		match = max(len(*s.Pattern.String), 1)
	}
	return 1 + len(s.Content)/match
}
