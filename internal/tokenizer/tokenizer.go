// Package tokenizer turns text into ids and back: BPE, Unigram, WordPiece and WordLevel, from Hugging
// Face's tokenizer.json, a GGUF file's metadata, Mistral's tekken.json, a SentencePiece model, or BERT's and
// GPT-2's vocabulary files.
//
// Every stage is an interface: normalizer, splitter (pre-tokenizer), model, decoder (a chain of stages); the
// post-processor is two lists of ids. Vocabulary and merges are flat arrays that may live outside the
// Go heap.
package tokenizer

import (
	"slices"
	"sync"
)

// Tokenizer is one model's tokenizer. It is safe for concurrent use.
type Tokenizer struct {
	vocab      *vocab
	normalizer normalizer // nil: none
	splitter   splitter
	model      model
	beginning  splitter // of what a text begins with; nil: like the rest
	decoder    chain
	rawAdded   *matcher // added tokens looked for in the text as it is; nil: none
	normAdded  *matcher // added tokens looked for in the normalized text; nil: none

	shown       map[int32]string // what added tokens decode to where that is not their text
	lenientRuns bool             // of a run of byte tokens only what is invalid becomes U+FFFD

	prefix, suffix []int32 // what AddSpecial puts around a text
	bos, eot       int32   // -1: none
	eos            []int32
	scratch        sync.Pool
}

// Options say how a text is encoded.
type Options struct {
	// AddSpecial puts the tokens around the text that the tokenizer adds by itself (BOS, EOS).
	AddSpecial bool
	// ParseSpecial recognizes control tokens that are written out in the text.
	ParseSpecial bool
}

// maxReused is the largest scratch, in symbols, that is kept for the next text.
const maxReused = 4096

// Encode appends the ids of text to dst. Text that is not UTF-8 is encoded byte for byte. The time is
// O(n log n) and the scratch at most 28 bytes for each byte of the longest piece between two splits.
// An error means that a pattern from the tokenizer's file, for which there is no scanner, took too long, or
// that a normalizer made far too much of the text.
func (t *Tokenizer) Encode(dst []int32, text string, o Options) ([]int32, error) {
	return t.EncodeSpans(dst, text, o, nil)
}

// EncodeSpans is Encode of a text whose parts are trusted in different degrees, such as a rendered chat:
// control tokens that touch a plain span are text there. Spans are sorted and do not overlap; they change
// nothing else, so that without control tokens in them the ids are those of Encode.
func (t *Tokenizer) EncodeSpans(dst []int32, text string, o Options, plain []Span) ([]int32, error) {
	s, _ := t.scratch.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	if o.AddSpecial {
		dst = append(dst, t.prefix...)
	}
	e := encoding{t: t, s: s, dst: dst, trust: trust{parse: o.ParseSpecial, plain: plain}}
	e.text(text)
	if e.err != nil {
		return nil, e.err
	}
	if cap(s.ids) <= maxReused && cap(s.nodes) <= maxReused {
		t.scratch.Put(s)
	}
	if o.AddSpecial {
		e.dst = append(e.dst, t.suffix...)
	}
	return e.dst, nil
}

// encoding is one call of Encode.
type encoding struct {
	t     *Tokenizer
	s     *scratch
	dst   []int32
	trust trust
	err   error
}

func (e *encoding) text(text string) {
	if e.t.rawAdded == nil {
		e.normalize(text, 0, len(text))
		return
	}
	e.t.rawAdded.split(text, e.trust, func(start, end int) { e.normalize(text, start, end) }, e.token)
}

func (e *encoding) token(id int32) { e.dst = append(e.dst, id) }

// normalize goes on with a part of the text between added tokens.
func (e *encoding) normalize(text string, start, end int) {
	part := text[start:end]
	if e.err != nil || part == "" {
		return
	}
	s, err := normalized(e.t.normalizer, part)
	if err != nil {
		e.err = err
		return
	}
	first := start == 0 && e.keepsFirst(part)
	if e.t.normAdded == nil {
		e.pieces(s, first)
		return
	}
	t := e.trust.within(start, end)
	if s != part && len(t.plain) > 0 {
		t = t.moved(part, s, e.t.normalizer)
	}
	e.t.normAdded.split(s, t, func(from, to int) { e.pieces(s[from:to], first && from == 0) }, e.token)
}

// keepsFirst reports whether the normalizer keeps the first character of a text. What comes after one that it
// drops is not the beginning to the library.
func (e *encoding) keepsFirst(text string) bool {
	if e.t.beginning == nil || e.t.normalizer == nil {
		return true
	}
	s, err := normalized(e.t.normalizer, text[:runeLen(text)])
	return err != nil || s != ""
}

// pieces goes on with normalized text; first says that the text begins with it.
func (e *encoding) pieces(s string, first bool) {
	if e.err != nil || s == "" {
		return
	}
	splitter := e.t.splitter
	if first && e.t.beginning != nil {
		splitter = e.t.beginning
	}
	e.err = splitter.split(s, func(piece string) error {
		e.dst = e.t.model.encode(e.dst, piece, e.s)
		return nil
	})
}

// Size is one more than the largest id.
func (t *Tokenizer) Size() int { return t.vocab.count() }

// Bytes returns what id stands for inside a text.
func (t *Tokenizer) Bytes(id int32) ([]byte, error) {
	c, ok, err := t.token(id, false)
	if !ok {
		return nil, err
	}
	var out []byte
	emit := func(c chunk) { out = append(out, c.b...) }
	flow := t.decoder.begin(true)
	flow.push(c, emit)
	flow.end(emit)
	return out, nil
}

// ID returns the id of a token by its text: an added token such as "<|im_end|>", or a token of the
// vocabulary.
func (t *Tokenizer) ID(token string) (int32, bool) {
	for _, m := range []*matcher{t.rawAdded, t.normAdded} {
		if m == nil {
			continue
		}
		if a := m.longest(token); a != nil && a.text == token {
			return a.id, true
		}
	}
	id, ok := t.vocab.find(token)
	return int32(id), ok
}

// IsSpecial reports whether id is a control token. An unknown id is not.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return t.vocab.has(id) && t.vocab.flags[id]&flagSpecial != 0
}

// BOS returns the token that begins a text, if the model has one.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos >= 0 }

// EOS returns the tokens that end an answer, as far as the tokenizer's files say; generation_config.json
// may know more.
func (t *Tokenizer) EOS() []int32 { return slices.Clone(t.eos) }

// EOT returns the token that ends a turn of a conversation, if the model has one.
func (t *Tokenizer) EOT() (int32, bool) { return t.eot, t.eot >= 0 }

// AddsBOS reports whether AddSpecial puts a BOS before the text.
func (t *Tokenizer) AddsBOS() bool { return len(t.prefix) > 0 && t.prefix[0] == t.bos }

// Token returns the text of an id as it is written in a template: for BOS and EOS.
func (t *Tokenizer) Token(id int32) string {
	if !t.vocab.has(id) {
		return ""
	}
	return string(t.vocab.bytes(uint32(id)))
}
