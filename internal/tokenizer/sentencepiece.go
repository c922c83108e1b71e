package tokenizer

import (
	"fmt"
	"io"
	"math"

	"github.com/spillway/spillway/internal/vfs"
)

// Fields of SentencePiece's ModelProto (sentencepiece_model.proto).
const (
	protoPiece, protoTrainer, protoNormalizer = 1, 2, 3

	modelUnigram, modelBPE = 1, 2

	maxCharsmap = 16 << 20 // bytes; released ones have 0.3 MB
	maxTrainer  = 4 << 20
)

// spmLoader reads a SentencePiece model, twice because the sizes are not known before.
type spmLoader struct {
	alloc  Alloc
	t      *Tokenizer
	tokens int
	size   int64 // bytes of all tokens
	scores f64s
	added  []added
	fixed  []added
	bytes  byteTokens

	kind                   uint64
	byteFallback           bool
	unk, bos, eos, surface string
	normalizer             spmNormalizer
	largest                float64 // score of a normal token
}

// spmPiece is a token of the model.
type spmPiece struct {
	text  []byte
	score float32
	kind  uint64
}

// loadSentencePiece reads the model in the file of that name, and tokenizer_config.json if it is there.
func loadSentencePiece(open vfs.Opener, name string, alloc Alloc) (*Tokenizer, error) {
	var config hfConfig
	if _, err := open.Stream("tokenizer_config.json", config.read); err != nil {
		return nil, err
	}
	l := &spmLoader{alloc: alloc, t: &Tokenizer{bos: -1, eot: -1}, bytes: newByteTokens(), kind: modelUnigram,
		unk: "<unk>", bos: "<s>", eos: "</s>", surface: " \u2047 ",
		normalizer: spmNormalizer{dummy: true, squeeze: true, escape: true}, largest: math.Inf(-1)}
	if err := l.pass(open, name, l.survey); err != nil {
		return nil, err
	}
	if l.tokens == 0 {
		return nil, formatError("%s has no tokens: it is no SentencePiece model", name)
	}
	if l.kind != modelUnigram && l.kind != modelBPE {
		return nil, unsupported("model", fmt.Sprintf("SentencePiece's type %d (1 is unigram, 2 BPE, 3 word, 4 char)", l.kind))
	}
	var err error
	if l.t.vocab, err = newVocab(l.tokens, l.size, alloc); err != nil {
		return nil, err
	}
	if l.scores, err = alloc(8 * l.tokens); err != nil {
		return nil, err
	}
	if err := l.pass(open, name, l.fill()); err != nil {
		return nil, err
	}
	return l.t, l.finish(&config)
}

func (l *spmLoader) pass(open vfs.Opener, name string, read func(p *protoReader, f protoField) error) error {
	there, err := open.Stream(name, func(r io.Reader) error {
		p := newProtoReader(r)
		return p.each(func(f protoField) error { return read(p, f) })
	})
	if err == nil && !there {
		err = formatError("there is no %s", name)
	}
	return err
}

// readSPMPiece reads a token.
func readSPMPiece(p *protoReader, f protoField) (piece spmPiece, err error) {
	b, err := p.bytes(f, maxTokenBytes+64)
	if err != nil {
		return piece, err
	}
	piece.kind = typeNormal
	inner := message(b)
	err = inner.each(func(f protoField) error {
		switch f.number {
		case 1:
			text, err := inner.bytes(f, maxTokenBytes)
			piece.text = append(piece.text[:0], text...)
			return err
		case 2:
			piece.score = math.Float32frombits(uint32(f.value))
		case 3:
			piece.kind = f.value
		}
		return inner.skip(f)
	})
	return piece, err
}

// survey is the first pass: sizes and settings.
func (l *spmLoader) survey(p *protoReader, f protoField) error {
	switch f.number {
	case protoPiece:
		piece, err := readSPMPiece(p, f)
		l.tokens++
		l.size += int64(len(piece.text))
		if l.tokens > maxTokens {
			return formatError("the vocabulary has more than %d tokens", maxTokens)
		}
		return err
	case protoTrainer:
		b, err := p.bytes(f, maxTrainer)
		if err != nil {
			return err
		}
		return l.trainer(message(b))
	case protoNormalizer:
		b, err := p.bytes(f, maxCharsmap)
		if err != nil {
			return err
		}
		return l.rules(message(b))
	}
	return p.skip(f)
}

// trainer reads the TrainerSpec.
func (l *spmLoader) trainer(p *protoReader) error {
	return p.each(func(f protoField) error {
		switch f.number {
		case 3:
			l.kind = f.value
		case 24:
			l.normalizer.suffix = f.value != 0
		case 35:
			l.byteFallback = f.value != 0
		case 44, 45, 46, 47:
			b, err := p.bytes(f, maxContent)
			*[]*string{&l.surface, &l.unk, &l.bos, &l.eos}[f.number-44] = string(b)
			return err
		}
		return p.skip(f)
	})
}

// rules reads the NormalizerSpec.
func (l *spmLoader) rules(p *protoReader) error {
	n := &l.normalizer
	return p.each(func(f protoField) error {
		switch f.number {
		case 2:
			return l.charsmap(p, f)
		case 3:
			n.dummy = f.value != 0
		case 4:
			n.squeeze = f.value != 0
		case 5:
			n.escape = f.value != 0
		}
		return p.skip(f)
	})
}

func (l *spmLoader) charsmap(p *protoReader, f protoField) error {
	b, err := p.bytes(f, maxCharsmap)
	if err != nil || len(b) == 0 {
		return err
	}
	own, err := l.alloc(len(b))
	if err != nil {
		return err
	}
	copy(own, b)
	l.normalizer.chars, err = newCharsmap(own)
	return err
}

// fill is the second pass.
func (l *spmLoader) fill() func(p *protoReader, f protoField) error {
	id := uint32(0)
	return func(p *protoReader, f protoField) error {
		if f.number != protoPiece {
			return p.skip(f)
		}
		piece, err := readSPMPiece(p, f)
		if err == nil {
			err = l.token(id, piece)
		}
		id++
		return err
	}
}

func (l *spmLoader) token(id uint32, piece spmPiece) error {
	flags, findable := byte(0), false
	switch piece.kind {
	case typeControl:
		flags = flagAdded | flagSpecial
	case typeUnknown:
		flags = flagAdded
		l.bytes.unk = id
		l.unk = string(piece.text)
	case typeUserDefined:
		findable = true
		l.fixed = append(l.fixed, added{text: string(piece.text), id: int32(id)})
	case typeByte:
		b, ok := byteOf(piece.text)
		if !ok {
			return formatError("token %d, %.20q, is for a byte but names none", id, piece.text)
		}
		flags = flagByte
		if l.byteFallback {
			l.bytes.ids[b] = id
		}
	case typeUnused:
	case typeNormal:
		findable = true
		l.largest = max(l.largest, float64(piece.score))
	default:
		return formatError("token %d is of type %d; there are types 1 to 6", id, piece.kind)
	}
	if flags&flagAdded != 0 {
		l.added = append(l.added, added{text: string(piece.text), id: int32(id), special: true})
	}
	if err := l.t.vocab.set(id, piece.text, flags); err != nil {
		return err
	}
	if findable {
		l.t.vocab.put(id)
	}
	l.scores.set(id, float64(piece.score))
	return nil
}

// finish puts the parts together.
func (l *spmLoader) finish(config *hfConfig) error {
	t := l.t
	fixed := newMatcher(l.fixed, func(added) bool { return true })
	l.normalizer.fixed = fixed
	t.normalizer, t.splitter, t.lenientRuns = l.normalizer, whole{}, true
	n := l.normalizer
	t.decoder = chain{spmPieces{unk: l.unk, surface: l.surface, drop: n.dummy || n.squeeze, all: n.squeeze}, byteFallback{}, fuse{}}
	t.rawAdded = newMatcher(l.added, func(added) bool { return true })
	var err error
	if l.kind == modelBPE {
		t.model, err = l.bpe(fixed)
	} else {
		t.model, err = l.unigram()
	}
	if err != nil {
		return err
	}
	l.ends(config)
	return nil
}

func (l *spmLoader) bpe(fixed *matcher) (model, error) {
	keys, err := l.alloc(4 * l.tokens)
	if err != nil {
		return nil, err
	}
	m := &scoredBPE{vocab: l.t.vocab, scores: keys, bytes: l.bytes}
	for id := range uint32(l.tokens) {
		m.scores.set(id, scoreKey(float32(l.scores.at(id))))
	}
	return spmBPE{m, fixed}, nil
}

// unigram makes the model; a user-defined symbol gets a score that beats any other way to its end
// (unigram_model.cc, EncodeOptimized).
func (l *spmLoader) unigram() (model, error) {
	v := l.t.vocab
	for _, a := range l.fixed {
		l.scores.set(uint32(a.id), float64(float32(float64(len(a.text))*l.largest))-0.1)
	}
	fixed := make(map[uint32]bool, len(l.fixed))
	for _, a := range l.fixed {
		fixed[uint32(a.id)] = true
	}
	findable := func(id uint32) bool {
		got, ok := v.find(string(v.bytes(id)))
		return ok && got == id
	}
	m, err := newUnigram(v, l.scores, l.bytes, l.alloc, findable, func(id uint32) bool { return findable(id) && !fixed[id] })
	if err != nil {
		return nil, err
	}
	m.single = true
	return m, nil
}

// ends sets the special ids: SentencePiece itself adds nothing; models begin texts with BOS unless the
// configuration says otherwise, and those without a BOS (T5) end them with EOS.
func (l *spmLoader) ends(config *hfConfig) {
	t := l.t
	control := func(text string) int32 {
		if id, ok := t.ID(text); ok && t.IsSpecial(id) {
			return id
		}
		return -1
	}
	t.bos = control(l.bos)
	eos := control(l.eos)
	t.addEOS(eos)
	t.findEOT()
	if t.bos >= 0 && orTrue(config.AddBOS) {
		t.prefix = []int32{t.bos}
	}
	if add := config.AddEOS; eos >= 0 && (add != nil && *add || add == nil && t.bos < 0) {
		t.suffix = []int32{eos}
	}
}
