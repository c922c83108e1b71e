// Package tokenizer turns text into ids and back: byte-level BPE and BPE with byte fallback, from Hugging
// Face's tokenizer.json or from a GGUF file's metadata.
//
// Every stage is an interface with one file: normalizer, splitter (pre-tokenizer), model, decoder; the
// post-processor is two lists of ids. Vocabulary and merges are flat arrays that may live outside the
// Go heap.
package tokenizer

import (
	"slices"
	"strings"
	"sync"
)

// Tokenizer is one model's tokenizer. It is safe for concurrent use.
type Tokenizer struct {
	vocab      *vocab
	normalizer normalizer // nil: none
	splitter   splitter
	model      model
	decoder    decoder
	first      string   // put before a text that does not begin with an added token
	rawAdded   *matcher // added tokens looked for in the text as it is; nil: none
	normAdded  *matcher // added tokens looked for in the normalized text; nil: none

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
// An error means that a pattern from the tokenizer's file, for which there is no scanner, took too long.
func (t *Tokenizer) Encode(dst []int32, text string, o Options) ([]int32, error) {
	s, _ := t.scratch.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	if o.AddSpecial {
		dst = append(dst, t.prefix...)
	}
	e := encoding{t: t, s: s, dst: dst, parse: o.ParseSpecial}
	e.text(text)
	if e.err != nil {
		return nil, e.err
	}
	if cap(s.ids) <= maxReused {
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
	parse bool
	err   error

	started bool // not at the beginning of the text
}

func (e *encoding) text(s string) {
	if e.t.rawAdded == nil {
		e.normalize(s)
		return
	}
	e.t.rawAdded.split(s, e.parse, e.normalize, e.token)
}

func (e *encoding) token(id int32) {
	e.dst = append(e.dst, id)
	e.started = true
}

func (e *encoding) normalize(s string) {
	if !e.started && s != "" && !strings.HasPrefix(s, e.t.first) {
		s = e.t.first + s
	}
	e.started = true
	if e.t.normalizer != nil {
		s = e.t.normalizer.normalize(s)
	}
	if e.t.normAdded == nil {
		e.pieces(s)
		return
	}
	e.t.normAdded.split(s, e.parse, e.pieces, e.token)
}

func (e *encoding) pieces(s string) {
	if e.err != nil {
		return
	}
	e.err = e.t.splitter.split(s, func(piece string) error {
		e.dst = e.t.model.encode(e.dst, piece, e.s)
		return nil
	})
}

// Size is one more than the largest id.
func (t *Tokenizer) Size() int { return t.vocab.count() }

// Bytes returns what id stands for inside a text.
func (t *Tokenizer) Bytes(id int32) ([]byte, error) {
	if err := t.vocab.check(id); err != nil {
		return nil, err
	}
	return t.decoder.append(nil, t.vocab, uint32(id), &decodeState{started: true}), nil
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
