package tokenizer

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint/jsonscan"
	"github.com/spillway/spillway/internal/vfs"
)

// gpt2Config is what tokenizer_config.json says of a tokenizer that is given as vocab.json and merges.txt.
type gpt2Config struct {
	hfConfig
	Class       string
	PrefixSpace bool
	Added       map[uint32]hfAdded // by id
}

func (c *gpt2Config) read(r io.Reader) error {
	s := jsonscan.New(r, maxText)
	return s.Object(func(key []byte) error {
		return decodeMember(s, key, map[string]any{
			"add_bos_token": &c.AddBOS, "add_eos_token": &c.AddEOS, "bos_token": &c.BOS, "eos_token": &c.EOS,
			"tokenizer_class": &c.Class, "add_prefix_space": &c.PrefixSpace, "added_tokens_decoder": &c.Added,
		})
	})
}

// loadGPT2 reads vocab.json and merges.txt: byte-level BPE as GPT-2 has it, or Qwen2 if the configuration
// names that.
func loadGPT2(open vfs.Opener, alloc Alloc) (*Tokenizer, error) {
	config := gpt2Config{}
	if _, err := open.Stream("tokenizer_config.json", config.read); err != nil {
		return nil, err
	}
	l := &hfLoader{open: open, alloc: alloc}
	l.file = hfFile{model: hfModel{kind: "BPE"}, decoder: section{Type: "ByteLevel"}, preTokenizer: config.preTokenizer()}
	if strings.HasPrefix(config.Class, "Qwen2") {
		l.file.normalizer.Type = "NFC"
	}
	if err := config.noteAdded(l); err != nil {
		return nil, err
	}
	l.source = &gpt2Files{open}
	if err := l.pass(l.survey); err != nil {
		return nil, err
	}
	return l.build(&config.hfConfig)
}

// noteAdded gives the added tokens to the loader, in the order of their ids.
func (c *gpt2Config) noteAdded(l *hfLoader) error {
	for _, id := range slices.Sorted(maps.Keys(c.Added)) {
		token := c.Added[id]
		token.ID = id
		if err := l.noteAdded(token); err != nil {
			return err
		}
	}
	return nil
}

// preTokenizer is that of the class that the configuration names.
func (c *gpt2Config) preTokenizer() section {
	bytes := section{Type: "ByteLevel", AddPrefixSpace: &c.PrefixSpace}
	if !strings.HasPrefix(c.Class, "Qwen2") {
		return bytes
	}
	split := section{Type: "Split", Behavior: "Isolated"}
	pattern, off := patternQwen2, false
	split.Pattern = &struct {
		String *string `json:"String"`
		Regex  *string `json:"Regex"`
	}{Regex: &pattern}
	bytes.UseRegex = &off
	return section{Type: "Sequence", Pretokenizers: []section{split, bytes}}
}

// gpt2Files are vocab.json and merges.txt, read as if they were the model of a tokenizer.json.
type gpt2Files struct{ open vfs.Opener }

// stream gives the text of a tokenizer.json with that model.
func (f *gpt2Files) stream(read func(io.Reader) error) (bool, error) {
	return f.open.Stream("vocab.json", func(vocab io.Reader) error {
		return f.withMerges(vocab, read)
	})
}

func (f *gpt2Files) withMerges(vocab io.Reader, read func(io.Reader) error) error {
	there, err := f.open.Stream("merges.txt", func(merges io.Reader) error {
		return read(io.MultiReader(strings.NewReader(`{"model":{"type":"BPE","vocab":`), vocab,
			strings.NewReader(`,"merges":[`), newMergeLines(merges), strings.NewReader(`]}}`)))
	})
	if err == nil && !there {
		err = formatError("there is no merges.txt beside vocab.json")
	}
	return err
}

// mergeLines makes JSON strings of the lines of merges.txt.
type mergeLines struct {
	r    io.Reader
	in   []byte
	out  []byte
	line []byte
	some bool
	err  error
}

func newMergeLines(r io.Reader) *mergeLines { return &mergeLines{r: r, in: make([]byte, 16<<10)} }

func (m *mergeLines) Read(p []byte) (int, error) {
	for len(m.out) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		var n int
		n, m.err = m.r.Read(m.in)
		for _, c := range m.in[:n] {
			if c == '\n' {
				m.flush()
			} else if len(m.line) <= 2*maxTokenBytes {
				m.line = append(m.line, c)
			}
		}
		if m.err == io.EOF {
			m.flush()
		}
	}
	n := copy(p, m.out)
	m.out = m.out[n:]
	return n, nil
}

// flush ends a line; the first may be a comment.
func (m *mergeLines) flush() {
	line := bytes.TrimRight(m.line, "\r ")
	m.line = m.line[:0]
	if len(line) == 0 || !m.some && bytes.HasPrefix(line, []byte("#version")) {
		return
	}
	text, _ := json.Marshal(string(line))
	if m.some {
		m.out = append(m.out, ',')
	}
	m.some = true
	m.out = append(m.out, text...)
}
