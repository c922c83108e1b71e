package tokenizer

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/spillway/spillway/internal/checkpoint/jsonscan"
	"github.com/spillway/spillway/internal/vfs"
)

// bertConfig is what tokenizer_config.json says of a BERT tokenizer.
type bertConfig struct {
	Lower   *bool
	Accents *bool
	Chinese *bool
}

func (c *bertConfig) read(r io.Reader) error {
	s := jsonscan.New(r, maxText)
	return s.Object(func(key []byte) error {
		return decodeMember(s, key, map[string]any{"do_lower_case": &c.Lower, "strip_accents": &c.Accents, "tokenize_chinese_chars": &c.Chinese})
	})
}

// normalizer is BERT's normalizer with these settings.
func (c bertConfig) normalizer() normalizer {
	lower := orTrue(c.Lower)
	accents := lower
	if c.Accents != nil {
		accents = *c.Accents
	}
	return bertNormalizer{true, orTrue(c.Chinese), accents, lower}
}

// bertSpecial are the control tokens of BERT.
var bertSpecial = [...]string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}

// loadBERT reads vocab.txt, a token a line, and tokenizer_config.json if it is there.
func loadBERT(open vfs.Opener, name string, alloc Alloc) (*Tokenizer, error) {
	var config bertConfig
	if _, err := open.Stream("tokenizer_config.json", config.read); err != nil {
		return nil, err
	}
	count, size := 0, int64(0)
	if err := eachLine(open, name, func(line []byte) error {
		count++
		size += int64(len(line))
		if count > maxTokens {
			return formatError("%s has more than %d tokens", name, maxTokens)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	v, err := newVocab(count, size, alloc)
	if err != nil {
		return nil, err
	}
	id := uint32(0)
	if err := eachLine(open, name, func(line []byte) error {
		err := v.set(id, line, 0)
		if err == nil {
			v.put(id)
		}
		id++
		return err
	}); err != nil {
		return nil, err
	}
	return newBERT(v, config, alloc)
}

// newBERT makes a BERT tokenizer of a vocabulary in which tokens inside a word begin with ##.
func newBERT(v *vocab, config bertConfig, alloc Alloc) (*Tokenizer, error) {
	t := &Tokenizer{bos: -1, eot: -1, vocab: v, normalizer: config.normalizer()}
	var all []added
	for _, text := range bertSpecial {
		if id, ok := v.find(text); ok {
			v.flags[id] |= flagAdded | flagSpecial
			all = append(all, added{text: text, id: int32(id), special: true})
		}
	}
	t.rawAdded = newMatcher(all, func(added) bool { return true })
	unk, ok := v.find("[UNK]")
	if !ok {
		return nil, formatError("the vocabulary has no [UNK]: it is none of BERT's kind")
	}
	if err := t.asBERT(unk, alloc); err != nil {
		return nil, err
	}
	if cls, ok := v.find("[CLS]"); ok {
		t.prefix = []int32{int32(cls)}
	}
	if sep, ok := v.find("[SEP]"); ok {
		t.suffix = []int32{int32(sep)}
	}
	return t, nil
}

// asBERT sets the stages that all BERT tokenizers share.
func (t *Tokenizer) asBERT(unk uint32, alloc Alloc) error {
	p := preTokenizer{}
	if err := p.add(section{Type: "BertPreTokenizer"}); err != nil {
		return err
	}
	t.splitter, _ = p.splitters()
	t.decoder = chain{wordPieces{prefix: "##", cleanup: true}, fuse{}}
	v := t.vocab
	var err error
	t.model, err = newWordPiece(v, alloc, "##", 100, unk, func(id uint32) bool {
		got, ok := v.find(string(v.bytes(id)))
		return ok && got == id
	})
	return err
}

// eachLine reads a text file line by line, without \n and \r\n.
func eachLine(open vfs.Opener, name string, line func([]byte) error) error {
	there, err := open.Stream(name, func(r io.Reader) error {
		lines := bufio.NewReaderSize(r, 64<<10)
		for {
			text, err := lines.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				return formatError("a line has more than %d bytes", 64<<10)
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if err != nil && len(text) == 0 {
				return nil
			}
			text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
			if len(text) > maxTokenBytes {
				return formatError("a line has %d bytes; at most %d are possible", len(text), maxTokenBytes)
			}
			if err := line(text); err != nil {
				return err
			}
		}
	})
	if err == nil && !there {
		err = formatError("there is no %s", name)
	}
	return err
}
