package tokenizer

import (
	"cmp"

	"golang.org/x/text/unicode/norm"
)

// stages makes the normalizer, the pre-tokenizer and the decoder of tokenizer.json.
func (l *hfLoader) stages(t *Tokenizer) error {
	f := &l.file
	var err error
	if t.normalizer, err = makeNormalizer(f.normalizer); err != nil {
		return err
	}
	p := preTokenizer{}
	if err := p.add(f.preTokenizer); err != nil {
		return err
	}
	if t.splitter = p.stages; len(p.stages) == 0 {
		t.splitter = whole{}
	}
	t.first = p.first
	if l.raw = !p.byteLevel; l.raw {
		l.chars = &charBPE{bytes: newByteTokens()}
	}
	return l.makeDecoder(t, f.decoder)
}

func makeNormalizer(s section) (normalizer, error) {
	switch s.Type {
	case "":
		return nil, nil
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
	case "Prepend":
		return prepend{s.Prepend}, nil
	case "Replace":
		if s.Pattern != nil && s.Pattern.String != nil {
			return replace{*s.Pattern.String, s.Content}, nil
		}
	case "Sequence":
		return makeNormalizers(s.Normalizers)
	}
	return nil, unsupported("normalizer", s.Type)
}

func makeNormalizers(list []section) (normalizer, error) {
	var all normalizers
	for _, s := range list {
		n, err := makeNormalizer(s)
		if err != nil {
			return nil, err
		}
		if n != nil {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// preTokenizer collects the stages of a pre-tokenizer.
type preTokenizer struct {
	stages    splitters
	byteLevel bool   // the bytes of the pieces are the model's symbols
	first     string // put before the text
}

func (p *preTokenizer) add(s section) error {
	if p.byteLevel && s.Type != "Sequence" {
		return unsupported("pre-tokenizer", s.Type+" after ByteLevel")
	}
	switch s.Type {
	case "":
	case "Sequence":
		for _, each := range s.Pretokenizers {
			if err := p.add(each); err != nil {
				return err
			}
		}
	case "ByteLevel":
		p.byteLevel = true
		if s.AddPrefixSpace == nil || *s.AddPrefixSpace {
			p.stages = append(p.stages, prefixSpace{})
		}
		if s.UseRegex == nil || *s.UseRegex {
			p.stages = append(p.stages, isolate{gpt2Words{}})
		}
	case "Digits":
		most := unlimited
		if s.IndividualDigits {
			most = 1
		}
		p.stages = append(p.stages, isolate{numbers{most}})
	case "Punctuation":
		b, ok := behaviours[s.Behavior]
		if s.Behavior != "" && !ok {
			return unsupported("pre-tokenizer", "Punctuation with behavior "+s.Behavior)
		}
		p.stages = append(p.stages, separate{finder: scan{punctuation{}}, behaviour: b})
	case "Split":
		return p.addSplit(s)
	case "Metaspace":
		return p.addMetaspace(s)
	default:
		return unsupported("pre-tokenizer", s.Type)
	}
	return nil
}

func (p *preTokenizer) addSplit(s section) error {
	b, ok := behaviours[s.Behavior]
	if !ok {
		return unsupported("pre-tokenizer", "Split with behavior "+s.Behavior)
	}
	switch {
	case s.Pattern != nil && s.Pattern.String != nil:
		p.stages = append(p.stages, separate{literal{*s.Pattern.String}, b, s.Invert})
	case s.Pattern == nil || s.Pattern.Regex == nil:
		return formatError("a pre-tokenizer of type Split has no pattern")
	case b == isolated: // inverted, gaps and matches change places: the pieces are the same
		stage, err := splitterFor(*s.Pattern.Regex)
		if err != nil {
			return err
		}
		p.stages = append(p.stages, stage)
	default:
		f, err := finderFor(*s.Pattern.Regex)
		if err != nil {
			return err
		}
		p.stages = append(p.stages, separate{f, b, s.Invert})
	}
	return nil
}

// addMetaspace adds SentencePiece's treatment of spaces: a mark stands for them, and one is put before the
// text ("first") or before every part of it between added tokens ("always").
func (p *preTokenizer) addMetaspace(s section) error {
	mark := s.Replacement
	if mark == "" {
		mark = spaceMark
	}
	scheme := s.PrependScheme
	if scheme == "" {
		if scheme = "always"; s.AddPrefixSpace != nil && !*s.AddPrefixSpace {
			scheme = "never"
		}
	}
	switch scheme {
	case "always":
		p.stages = append(p.stages, metaspace{mark, true})
	case "first":
		p.first = mark
		p.stages = append(p.stages, metaspace{mark, false})
	case "never":
		p.stages = append(p.stages, metaspace{mark, false})
	default:
		return unsupported("pre-tokenizer", "Metaspace with prepend_scheme "+scheme)
	}
	if s.Split == nil || *s.Split {
		p.stages = append(p.stages, separate{finder: literal{mark}, behaviour: mergedWithNext})
	}
	return nil
}

// makeDecoder makes the byte-level decoder, or that of byte fallback.
func (l *hfLoader) makeDecoder(t *Tokenizer, s section) error {
	parts := []section{s}
	if s.Type == "Sequence" {
		parts = s.Decoders
	}
	if !l.raw {
		if len(parts) != 1 || parts[0].Type != "ByteLevel" {
			return unsupported("decoder", s.Type)
		}
		t.decoder = byteLevel{}
		return nil
	}
	var d spaced
	for _, part := range parts {
		switch {
		case part.Type == "Replace" && part.Pattern != nil && part.Pattern.String != nil && part.Content == " ":
			d.mark = []byte(*part.Pattern.String)
		case part.Type == "ByteFallback", part.Type == "Fuse":
		case part.Type == "Strip" && part.Content == " " && part.Start == 1 && part.Stop == 0:
			d.dropPrefix = true
		case part.Type == "Metaspace":
			d = spaced{[]byte(cmp.Or(part.Replacement, spaceMark)), part.PrependScheme != "never" && (part.AddPrefixSpace == nil || *part.AddPrefixSpace)}
		default:
			return unsupported("decoder", part.Type)
		}
	}
	t.decoder = d
	return nil
}

// ends makes the post-processor and the special ids.
func (l *hfLoader) ends(t *Tokenizer, config *hfConfig) error {
	template, err := l.template(t, l.file.postProcessor)
	if err != nil {
		return err
	}
	if id, ok := t.ID(string(config.BOS)); ok {
		t.bos = id
		if !template && config.AddBOS != nil && *config.AddBOS {
			t.prefix = []int32{id}
		}
	}
	if id, ok := t.ID(string(config.EOS)); ok {
		t.eos = []int32{id}
		if !template && config.AddEOS != nil && *config.AddEOS {
			t.suffix = []int32{id}
		}
	}
	t.findEOT()
	return nil
}

// template reads a TemplateProcessing post-processor; it reports whether there is one.
func (l *hfLoader) template(t *Tokenizer, s section) (bool, error) {
	switch s.Type {
	case "", "ByteLevel":
		return false, nil
	case "Sequence":
		found := false
		for _, each := range s.Processors {
			one, err := l.template(t, each)
			if err != nil {
				return false, err
			}
			if one && found {
				return false, unsupported("post-processor", "Sequence of two templates")
			}
			found = found || one
		}
		return found, nil
	case "TemplateProcessing":
		return true, l.readTemplate(t, s)
	}
	return false, unsupported("post-processor", s.Type)
}

func (l *hfLoader) readTemplate(t *Tokenizer, s section) error {
	into := &t.prefix
	for _, item := range s.Single {
		if item.SpecialToken == nil {
			into = &t.suffix
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
	return nil
}
