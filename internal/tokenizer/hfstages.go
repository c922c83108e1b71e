package tokenizer

import (
	"cmp"
	"encoding/base64"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxContent bounds, in bytes, what a normalizer puts in the place of a match or before a text.
const maxContent = 256

// stages makes the normalizer, the pre-tokenizer and the decoder of tokenizer.json.
func (l *hfLoader) stages(t *Tokenizer) error {
	f := &l.file
	var err error
	if t.normalizer, err = l.makeNormalizer(f.normalizer); err != nil {
		return err
	}
	l.raw = !f.isByteLevel()
	p := preTokenizer{raw: l.raw}
	if err := p.add(f.preTokenizer); err != nil {
		return err
	}
	t.splitter, t.beginning = p.splitters()
	if l.raw {
		l.chars = &charBPE{bytes: newByteTokens()}
	}
	if l.raw {
		t.decoder, err = makeChain(f.decoder)
	}
	return err
}

// isByteLevel reports whether the file is of the usual kind whose symbols are bytes: BPE with ByteLevel as
// the last pre-tokenizer and the only decoder. Then the vocabulary is held as bytes and nothing is mapped.
func (f *hfFile) isByteLevel() bool {
	if f.model.kind != "BPE" || f.model.prefix != "" || f.model.suffix != "" || f.model.byteFallback || f.normalizer.has("ByteLevel") {
		return false
	}
	decoders := f.decoder.flat()
	parts := f.preTokenizer.flat()
	if len(decoders) != 1 || decoders[0].Type != "ByteLevel" || len(parts) == 0 || parts[len(parts)-1].Type != "ByteLevel" {
		return false
	}
	for _, part := range parts[:len(parts)-1] {
		if part.Type == "ByteLevel" {
			return false
		}
	}
	return true
}

func (l *hfLoader) makeNormalizer(s section) (normalizer, error) {
	var all normalizers
	for _, part := range s.flat() {
		n, err := l.makeOneNormalizer(part)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return all[0], nil
	}
	return all, nil
}

func (l *hfLoader) makeOneNormalizer(s section) (normalizer, error) {
	switch s.Type {
	case "NFC":
		return composer{norm.NFC}, nil
	case "NFD":
		return composer{norm.NFD}, nil
	case "NFKC":
		return composer{norm.NFKC}, nil
	case "NFKD":
		return composer{norm.NFKD}, nil
	case "Lowercase":
		return lowercase{}, nil
	case "Nmt":
		return nmt{}, nil
	case "StripAccents":
		return stripAccents{}, nil
	case "ByteLevel":
		return byteMap{}, nil
	case "Strip":
		return strip{orTrue(s.StripLeft), orTrue(s.StripRight)}, nil
	case "BertNormalizer":
		lower := orTrue(s.Lowercase)
		accents := lower
		if s.StripAccents != nil {
			accents = *s.StripAccents
		}
		return bertNormalizer{orTrue(s.CleanText), orTrue(s.HandleChineseChars), accents, lower}, nil
	case "Prepend":
		if len(s.Prepend) > maxContent {
			return nil, tooLong("Prepend", len(s.Prepend))
		}
		return prepend{s.Prepend}, nil
	case "Replace":
		return makeReplace(s)
	case "Precompiled":
		return l.makePrecompiled(s)
	}
	return nil, unsupported("normalizer", s.Type)
}

func orTrue(b *bool) bool { return b == nil || *b }

func tooLong(kind string, n int) error {
	return formatError("the content of a %s has %d bytes; at most %d are possible", kind, n, maxContent)
}

func makeReplace(s section) (normalizer, error) {
	switch {
	case len(s.Content) > maxContent:
		return nil, tooLong("Replace", len(s.Content))
	case s.Pattern != nil && s.Pattern.String != nil:
		return replace{*s.Pattern.String, s.Content}, nil
	case s.Pattern != nil && s.Pattern.Regex != nil:
		f, err := finderFor(*s.Pattern.Regex)
		if err != nil {
			return nil, unsupported("normalizer", "Replace with pattern "+*s.Pattern.Regex)
		}
		return replacePattern{f, s.Content}, nil
	}
	return nil, formatError("a Replace has no pattern")
}

func (l *hfLoader) makePrecompiled(s section) (normalizer, error) {
	if s.PrecompiledCharsmap == "" {
		return replace{}, nil
	}
	b, err := l.alloc(base64.StdEncoding.DecodedLen(len(s.PrecompiledCharsmap)))
	if err != nil {
		return nil, err
	}
	n, err := base64.StdEncoding.Decode(b, []byte(s.PrecompiledCharsmap))
	if err != nil {
		return nil, formatError("the normalizer's precompiled_charsmap is not base64: %v", err)
	}
	m, err := newCharsmap(b[:n])
	if err != nil {
		return nil, err
	}
	return precompiled{m}, nil
}

// makeChain makes the stages of a decoder.
func makeChain(s section) (chain, error) {
	if s.Type == "" {
		return chain{joined{}}, nil
	}
	var c chain
	grows := 1
	for _, part := range s.flat() {
		if grows *= part.growth(); grows > maxGrowth {
			return nil, formatError("the decoder's Replace stages make text more than %d times longer", maxGrowth)
		}
		kind, err := makeStage(part)
		if err != nil {
			return nil, err
		}
		c = append(c, kind)
	}
	return append(c, fuse{}), nil
}

func makeStage(s section) (stageKind, error) {
	switch s.Type {
	case "ByteLevel":
		return byteChars{}, nil
	case "ByteFallback":
		return byteFallback{}, nil
	case "Fuse":
		return fuse{}, nil
	case "Replace":
		n, err := makeReplace(s)
		if err != nil {
			return nil, err
		}
		if p, ok := n.(replacePattern); ok {
			return swapPattern{n: p}, nil
		}
		return swap{old: *s.Pattern.String, new: s.Content}, nil
	case "Strip":
		if utf8.RuneCountInString(s.Content) != 1 || s.Start < 0 || s.Stop < 0 {
			return nil, formatError("a Strip decoder has content %.20q, start %d and stop %d", s.Content, s.Start, s.Stop)
		}
		return trim{content: s.Content, start: s.Start, stop: s.Stop}, nil
	case "Metaspace":
		scheme, err := s.scheme()
		return unspace{mark: cmp.Or(s.Replacement, spaceMark), drop: scheme != "never"}, err
	case "WordPiece":
		return wordPieces{prefix: s.Prefix, cleanup: orTrue(s.Cleanup)}, nil
	case "BPEDecoder":
		return suffixed{suffix: s.Suffix}, nil
	case "CTC":
		return ctc{pad: s.PadToken, delimiter: s.WordDelimiterToken, cleanup: orTrue(s.Cleanup)}, nil
	}
	return nil, unsupported("decoder", s.Type)
}

// ends makes the post-processor and the special ids.
func (l *hfLoader) ends(t *Tokenizer, config *hfConfig) error {
	template := false
	for _, part := range l.file.postProcessor.flat() {
		did, err := l.process(t, part)
		if err != nil {
			return err
		}
		if did && template {
			return unsupported("post-processor", "Sequence of two that add tokens")
		}
		template = template || did
	}
	return config.ends(t, template)
}

// ends reads the special ids; what the configuration adds counts unless a template says what is added.
func (c *hfConfig) ends(t *Tokenizer, template bool) error {
	if id, ok := t.ID(string(c.BOS)); ok {
		t.bos = id
		if !template && c.AddBOS != nil && *c.AddBOS {
			t.prefix = []int32{id}
		}
	}
	if id, ok := t.ID(string(c.EOS)); ok {
		t.eos = []int32{id}
		if !template && c.AddEOS != nil && *c.AddEOS {
			t.suffix = []int32{id}
		}
	}
	t.findEOT()
	return nil
}

// process makes one post-processor; it reports whether that adds tokens.
func (l *hfLoader) process(t *Tokenizer, s section) (bool, error) {
	switch s.Type {
	case "ByteLevel": // changes offsets only
		return false, nil
	case "TemplateProcessing":
		return true, l.readTemplate(t, s)
	case "BertProcessing", "RobertaProcessing":
		before, err := s.Cls.id(t)
		if err != nil {
			return false, err
		}
		after, err := s.Sep.id(t)
		if err != nil {
			return false, err
		}
		t.prefix = append([]int32{before}, t.prefix...)
		t.suffix = append(t.suffix, after)
		return true, nil
	}
	return false, unsupported("post-processor", s.Type)
}

func (l *hfLoader) readTemplate(t *Tokenizer, s section) error {
	var before, after []int32
	into := &before
	for _, item := range s.Single {
		if item.SpecialToken == nil {
			into = &after
			continue
		}
		token, ok := s.SpecialTokens[item.SpecialToken.ID]
		if !ok {
			return formatError("the post-processor names %q, which it does not define", item.SpecialToken.ID)
		}
		for _, id := range token.IDs {
			if err := t.vocab.check(id); err != nil {
				return formatError("the post-processor: %v", err)
			}
			*into = append(*into, id)
		}
	}
	t.prefix = append(before, t.prefix...)
	t.suffix = append(t.suffix, after...)
	return nil
}
