package tokenizer

import (
	"encoding/base64"
	"fmt"
	"io"

	"github.com/spillway/spillway/internal/checkpoint/jsonscan"
	"github.com/spillway/spillway/internal/vfs"
)

// tekkenSpecial are the special tokens of files that do not list them (mistral-common, versions up to 7).
var tekkenSpecial = [...]string{
	"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
	"[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]",
	"[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
}

// tekkenFile is tekken.json without its vocabulary.
type tekkenFile struct {
	Config struct {
		Pattern string `json:"pattern"`
		Size    int    `json:"default_vocab_size"` // special tokens included
		Special int    `json:"default_num_special_tokens"`
	}
	Special []struct {
		Rank int    `json:"rank"`
		Text string `json:"token_str"`
	}
	tokens int
	bytes  int64
}

// tekkenLoader reads tekken.json: byte strings by rank, which come after the special tokens, merged as
// OpenAI's tiktoken does.
type tekkenLoader struct {
	open  vfs.Opener
	alloc Alloc
	name  string
	file  tekkenFile
	vocab *vocab
	token []byte
}

func loadTekken(open vfs.Opener, name string, alloc Alloc) (*Tokenizer, error) {
	l := &tekkenLoader{open: open, alloc: alloc, name: name}
	if err := l.pass(func(token []byte) error {
		l.file.tokens++
		l.file.bytes += int64(len(token))
		return nil
	}, true); err != nil {
		return nil, err
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	stage, err := splitterFor(l.file.Config.Pattern)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{bos: -1, eot: -1, splitter: stage}
	if err := l.tables(t); err != nil {
		return nil, err
	}
	if id, ok := t.ID("<s>"); ok && t.IsSpecial(id) {
		t.bos, t.prefix = id, []int32{id}
	}
	if id, ok := t.ID("</s>"); ok && t.IsSpecial(id) {
		t.addEOS(id)
	}
	t.findEOT()
	return t, nil
}

// pass reads the file; token gets the bytes of each token, in order.
func (l *tekkenLoader) pass(token func([]byte) error, all bool) error {
	_, err := l.open.Stream(l.name, func(r io.Reader) error {
		s := jsonscan.New(r, maxText)
		if err := s.Object(func(key []byte) error {
			switch {
			case string(key) == "vocab":
				return s.Array(func() error { return l.entry(s, token) })
			case string(key) == "config" && all:
				return s.Decode(&l.file.Config, maxSection)
			case string(key) == "special_tokens" && all:
				return s.Decode(&l.file.Special, maxSection)
			}
			return s.Skip()
		}); err != nil {
			return err
		}
		return s.End()
	})
	return err
}

func (l *tekkenLoader) entry(s *jsonscan.Scanner, token func([]byte) error) error {
	l.token = l.token[:0]
	if err := s.Object(func(key []byte) error {
		if string(key) != "token_bytes" {
			return s.Skip()
		}
		text, err := s.Text()
		if err != nil {
			return err
		}
		if l.token, err = base64.StdEncoding.AppendDecode(l.token[:0], text); err != nil {
			return formatError("token %q is not base64: %v", text, err)
		}
		return nil
	}); err != nil {
		return err
	}
	return token(l.token)
}

// check compares the numbers in the file with each other.
func (l *tekkenLoader) check() error {
	c := &l.file.Config
	if c.Special < 0 || c.Special > c.Size || int64(c.Size) > int64(l.file.tokens)+int64(c.Special) || c.Size > maxTokens ||
		c.Special > maxTokens/16 {
		return formatError("%s: default_vocab_size is %d and default_num_special_tokens %d, with %d tokens", l.name, c.Size, c.Special, l.file.tokens)
	}
	if l.file.Special == nil {
		for i, text := range tekkenSpecial[:min(len(tekkenSpecial), c.Special)] {
			l.file.Special = append(l.file.Special, struct {
				Rank int    `json:"rank"`
				Text string `json:"token_str"`
			}{i, text})
		}
	}
	if len(l.file.Special) > c.Special {
		return formatError("%s: %d special tokens, and default_num_special_tokens is %d", l.name, len(l.file.Special), c.Special)
	}
	return nil
}

// tables reads the vocabulary and makes the model.
func (l *tekkenLoader) tables(t *Tokenizer) error {
	c := l.file.Config
	const fillerBytes = 24
	size := l.file.bytes + fillerBytes*int64(c.Special)
	for _, special := range l.file.Special {
		size += int64(len(special.Text))
	}
	var err error
	if t.vocab, err = newVocab(c.Size, size, l.alloc); err != nil {
		return err
	}
	l.vocab = t.vocab
	if err := l.special(t); err != nil {
		return err
	}
	id := uint32(c.Special)
	if err := l.pass(func(token []byte) error {
		if int(id) >= c.Size {
			return nil // the file has more tokens than the model
		}
		err := l.vocab.set(id, token, 0)
		if err == nil {
			l.vocab.put(id)
		}
		id++
		return err
	}, false); err != nil {
		return err
	}
	t.model, err = newRankBPE(l.vocab, l.alloc)
	return err
}

// special sets the special tokens; those without a name get one.
func (l *tekkenLoader) special(t *Tokenizer) error {
	var all []added
	add := func(id int, text string) error {
		all = append(all, added{text: text, id: int32(id), special: true})
		return l.vocab.set(uint32(id), []byte(text), flagAdded|flagSpecial)
	}
	for _, special := range l.file.Special {
		if special.Rank < 0 || special.Rank >= l.file.Config.Special {
			return formatError("special token %.50q has rank %d, of %d", special.Text, special.Rank, l.file.Config.Special)
		}
		if err := add(special.Rank, special.Text); err != nil {
			return err
		}
	}
	for id := range l.file.Config.Special {
		if l.vocab.has(int32(id)) {
			continue
		}
		if err := add(id, fmt.Sprintf("<SPECIAL_%d>", id)); err != nil {
			return err
		}
	}
	t.rawAdded = newMatcher(all, func(added) bool { return true })
	return nil
}
