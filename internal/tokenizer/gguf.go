package tokenizer

import (
	"github.com/spillway/spillway/internal/checkpoint"
)

// Keys of GGUF's metadata (the GGUF specification, "Tokenizer").
const (
	keyModel  = "tokenizer.ggml.model"
	keyPre    = "tokenizer.ggml.pre"
	keyTokens = "tokenizer.ggml.tokens"
	keyTypes  = "tokenizer.ggml.token_type"
	keyMerges = "tokenizer.ggml.merges"
	keyAddBOS = "tokenizer.ggml.add_bos_token"
	keyAddEOS = "tokenizer.ggml.add_eos_token"
	keyBOS    = "tokenizer.ggml.bos_token_id"
	keyEOS    = "tokenizer.ggml.eos_token_id"
	keyEOT    = "tokenizer.ggml.eot_token_id"
	keyEOM    = "tokenizer.ggml.eom_token_id"
)

// Token types of GGUF.
const (
	typeNormal      = 1
	typeUnknown     = 2
	typeControl     = 3
	typeUserDefined = 4
	typeUnused      = 5
	typeByte        = 6
)

// loadGGUF reads the tokenizer of a GGUF file. The format has no key for a normalizer, so that text is
// taken as it is: where tokenizer.json asks for NFC, text that is not composed gets other ids from a GGUF
// file of the same model.
func loadGGUF(meta checkpoint.Meta, alloc Alloc) (*Tokenizer, error) {
	kind, ok := meta.String(keyModel)
	if !ok {
		return nil, formatError("the file has no %s", keyModel)
	}
	l := &ggufLoader{meta: meta, alloc: alloc, t: &Tokenizer{bos: -1, eot: -1}}
	addBOS := true
	var err error
	switch kind {
	case "gpt2":
		name, _ := meta.String(keyPre)
		addBOS, err = l.byteLevel(name)
	case "gemma4":
		addBOS, err = l.byteLevel(kind)
	case "llama":
		err = l.sentencePiece()
	case "t5":
		addBOS = false
		err = l.unigram()
	case "bert":
		return l.bert()
	default:
		err = unsupported("model", kind)
	}
	if err != nil {
		return nil, err
	}
	return l.t, l.ends(addBOS)
}

type ggufLoader struct {
	meta  checkpoint.Meta
	alloc Alloc
	t     *Tokenizer
	added []added
	extra int64 // bytes that a token may have more than in the file
}

// byteLevel reads a vocabulary of byte-level BPE (tokenizer.ggml.model = gpt2) with a pre-tokenizer. It reports whether a BOS is
// added if the file does not say.
func (l *ggufLoader) byteLevel(name string) (addBOS bool, err error) {
	how, ok := preFor(name)
	if !ok {
		return false, unsupported("pre-tokenizer", name)
	}
	if how.raw {
		return l.rawBPE(how)
	}
	stages, err := stagesOf(how)
	if err != nil {
		return false, err
	}
	l.t.splitter = stages
	var bytes []byte
	if err := l.vocabulary(func(_ uint32, token []byte) ([]byte, byte, bool) {
		var plain bool
		if bytes, plain = unmapBytes(bytes[:0], token); plain {
			return bytes, 0, true
		}
		return token, 0, false
	}); err != nil {
		return false, err
	}
	table, err := l.readMerges(unmapped)
	if err != nil {
		return false, err
	}
	l.t.model = newBPE(l.t.vocab, table, how.ignoreMerges)
	l.t.rawAdded = newMatcher(l.added, func(added) bool { return true })
	return how.addBOS, nil
}

// meaning says what bytes an ordinary token stands for, its flags, and whether text can become it. At that
// time the token's flags are its GGUF type.
type meaning func(id uint32, token []byte) (bytes []byte, flags byte, findable bool)

// vocabulary reads the tokens, twice because their size is not known before.
func (l *ggufLoader) vocabulary(of meaning) error {
	count, bytes := 0, int64(0)
	for token, err := range l.meta.Strings(keyTokens) {
		if err != nil {
			return err
		}
		count++
		bytes += int64(len(token))
	}
	if count == 0 {
		return formatError("the vocabulary (%s) is empty", keyTokens)
	}
	var err error
	if l.t.vocab, err = newVocab(count, bytes+l.extra*int64(count), l.alloc); err != nil {
		return err
	}
	if err := l.readTypes(count); err != nil {
		return err
	}
	return l.readTokens(of)
}

// readTypes puts each token's type into its flags; readTokens makes flags of them.
func (l *ggufLoader) readTypes(count int) error {
	flags := l.t.vocab.flags
	i := 0
	for kind, err := range l.meta.Ints(keyTypes) {
		if err != nil {
			return err
		}
		if i >= count || kind < 0 || kind > typeByte {
			return formatError("%s: entry %d is %d, of %d tokens", keyTypes, i, kind, count)
		}
		flags[i] = byte(kind)
		i++
	}
	if i != 0 && i != count {
		return formatError("%s has %d entries for %d tokens", keyTypes, i, count)
	}
	return nil
}

func (l *ggufLoader) readTokens(of meaning) error {
	v := l.t.vocab
	id := uint32(0)
	for token, err := range l.meta.Strings(keyTokens) {
		if err != nil {
			return err
		}
		if int(id) >= v.count() {
			return formatError("the vocabulary changed while it was read")
		}
		flags, findable := byte(0), false
		switch v.flags[id] {
		case typeControl, typeUnknown:
			flags = flagAdded | flagSpecial
		case typeUserDefined:
			flags = flagAdded
		case typeUnused:
			flags, token = flagHidden, nil
		default:
			token, flags, findable = of(id, token)
		}
		v.flags[id] = 0
		if err := v.set(id, token, flags); err != nil {
			return err
		}
		if findable {
			v.put(id)
		}
		if flags&flagAdded != 0 {
			l.added = append(l.added, added{text: string(token), id: int32(id), special: flags&flagSpecial != 0})
		}
		id++
	}
	return nil
}

// readMerges reads the merges; meaning appends what a token stands for.
func (l *ggufLoader) readMerges(meaning func(dst, token []byte) []byte) (*merges, error) {
	count, ok := l.meta.Count(keyMerges)
	if !ok {
		return nil, formatError("the file has no %s", keyMerges)
	}
	table, err := newMerges(count, l.alloc)
	if err != nil {
		return nil, err
	}
	var left, right []byte
	for both, err := range l.meta.Strings(keyMerges) {
		if err != nil {
			return nil, err
		}
		first, second, err := cutMerge(both)
		if err != nil {
			return nil, err
		}
		left, right = meaning(left[:0], first), meaning(right[:0], second)
		if err := addMerge(l.t.vocab, table, left, right, 0); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// ends reads the special ids.
func (l *ggufLoader) ends(addBOS bool) error {
	t := l.t
	var eos, eom int32
	for _, field := range []struct {
		key  string
		into *int32
	}{{keyBOS, &t.bos}, {keyEOS, &eos}, {keyEOT, &t.eot}, {keyEOM, &eom}} {
		*field.into = -1
		id, ok := l.meta.Int(field.key)
		if !ok {
			continue
		}
		if id < 0 || id >= int64(t.Size()) {
			return formatError("%s is %d, which is not in the vocabulary of %d tokens", field.key, id, t.Size())
		}
		*field.into = int32(id)
	}
	t.addEOS(eos)
	t.findEOT()
	t.addEOS(eom)
	add, ok := l.meta.Bool(keyAddBOS)
	if kind, _ := l.meta.String(keyModel); kind == "gemma4" {
		add = true // the first files deny it wrongly
	}
	if (add || !ok && addBOS) && t.bos >= 0 {
		t.prefix = []int32{t.bos}
	}
	add, ok = l.meta.Bool(keyAddEOS)
	if kind, _ := l.meta.String(keyModel); !ok && kind == "t5" {
		add = true
	}
	if add && eos >= 0 {
		t.suffix = []int32{eos}
	}
	return nil
}
