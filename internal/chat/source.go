package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/jsonscan"
	"github.com/spillway/spillway/internal/vfs"
)

// Names that the files give to templates.
const (
	defaultName = "default"
	toolName    = "tool_use" // for requests with tools
)

// Set are the templates that a model comes with, and the one that was chosen. Choose before it is used
// from several goroutines.
type Set struct {
	named   []named
	open    vfs.Opener // of the model's folder; nil: none
	chosen  *Template  // nil: by the request
	guessed *Template  // for models without a template
	bos     string
	eos     string
}

type named struct {
	name     string
	template *Template
}

// FromCatalog returns the model's templates: tokenizer.chat_template and tokenizer.chat_template.NAME of a
// GGUF file, else those of FromFolder. They are read when they are first rendered.
func FromCatalog(c *checkpoint.Catalog) (*Set, error) {
	if c.Format != checkpoint.GGUF {
		return FromFolder(c.OpenBeside)
	}
	s := &Set{}
	const key = "tokenizer.chat_template"
	for k := range c.Meta.Keys() {
		name := defaultName
		if k != key {
			after, ok := strings.CutPrefix(k, key+".")
			if !ok {
				continue
			}
			name = after
		}
		source, ok := c.Meta.String(k)
		if !ok {
			return nil, &checkpoint.FormatError{Path: c.Path, Where: "key " + k, What: fmt.Sprintf("it is no string of at most %d bytes", maxSource)}
		}
		s.add(name, "the model's ("+k+")", source)
	}
	return s, nil
}

// FromFolder returns the templates of a folder in Hugging Face layout: chat_template.jinja, else chat_template
// in tokenizer_config.json (one or several named ones), else in chat_template.json; and those of
// additional_chat_templates.
func FromFolder(open vfs.Opener) (*Set, error) {
	s := &Set{open: open}
	var config config
	if _, err := open.Stream("tokenizer_config.json", config.read); err != nil {
		return nil, err
	}
	s.bos, s.eos = config.bos, config.eos
	if err := s.addFile(defaultName, "chat_template.jinja"); err != nil {
		return nil, err
	}
	if err := s.addFile(toolName, additional(toolName)); err != nil {
		return nil, err
	}
	s.addAll("tokenizer_config.json", config.templates)
	if s.find(defaultName) == nil {
		const file = "chat_template.json"
		processor := config
		processor.templates = nil
		if _, err := open.Stream(file, processor.read); err != nil {
			return nil, err
		}
		s.addAll(file, processor.templates)
	}
	return s, nil
}

// additional is the file of a named template.
func additional(name string) string { return "additional_chat_templates/" + name + ".jinja" }

// add adds a template unless there is one of that name.
func (s *Set) add(name, where, source string) {
	if source == "" || s.find(name) != nil {
		return
	}
	t := newTemplate(where, source)
	t.BOS, t.EOS = s.bos, s.eos
	s.named = append(s.named, named{name, t})
}

func (s *Set) addAll(file string, list []entry) {
	for _, n := range list {
		where := "the model's (" + file + ")"
		if n.Name != defaultName {
			where = "the model's (" + n.Name + " in " + file + ")"
		}
		if len(list) == 1 {
			n.Name = defaultName
		}
		s.add(n.Name, where, n.Template)
	}
}

// addFile adds the template of a file, if it is there.
func (s *Set) addFile(name, file string) error {
	var source []byte
	found, err := s.open.Stream(file, func(r io.Reader) (err error) {
		source, err = io.ReadAll(io.LimitReader(r, maxSource+1))
		return err
	})
	if found && err == nil {
		s.add(name, "the model's ("+file+")", string(source))
	}
	return err
}

func (s *Set) find(name string) *Template {
	for _, n := range s.named {
		if n.name == name {
			return n.template
		}
	}
	return nil
}

// Names are those of the model's own templates.
func (s *Set) Names() []string {
	names := make([]string, len(s.named))
	for i, n := range s.named {
		names[i] = n.name
	}
	return names
}

// Use chooses a template for all requests by its name: the model's own, else one of BuiltinNames.
func (s *Set) Use(name string) error {
	if s.open != nil && s.find(name) == nil && filepath.IsLocal(name) && !strings.ContainsAny(name, `/\`) {
		if err := s.addFile(name, additional(name)); err != nil {
			return err
		}
	}
	t := s.find(name)
	if t == nil {
		if t = Builtin(name); t == nil {
			return fmt.Errorf("there is no chat template %.100q; the names are %s", name, strings.Join(slices.Concat(s.Names(), BuiltinNames()), ", "))
		}
	}
	return s.choose(t)
}

// UseSource chooses a template for all requests by its text; where says where that is from.
func (s *Set) UseSource(where, source string) error { return s.choose(newTemplate(where, source)) }

func (s *Set) choose(t *Template) error {
	if err := t.load(); err != nil {
		return err
	}
	if t.BOS == "" && t.EOS == "" {
		t.BOS, t.EOS = s.bos, s.eos
	}
	s.chosen = t
	return nil
}

// Guess says what the vocabulary has, from which the format of models without a template is guessed.
func (s *Set) Guess(has func(token string) bool) {
	s.guessed = Guess(has)
	s.guessed.BOS, s.guessed.EOS = s.bos, s.eos
}

// Guessed reports whether the template is one that the vocabulary suggests: the model has none, and none
// was chosen.
func (s *Set) Guessed() bool { return s.chosen == nil && len(s.named) == 0 }

// For returns the template for a request: the one that was chosen, else the one for tools if there is one
// and the request has tools, else the default one.
func (s *Set) For(tools bool) (*Template, error) {
	if s.chosen != nil {
		return s.chosen, nil
	}
	if t := s.find(toolName); tools && t != nil {
		return t, nil
	}
	if t := s.find(defaultName); t != nil {
		return t, nil
	}
	switch {
	case len(s.named) > 0:
		return nil, fmt.Errorf("none of the model's chat templates is the default one; choose from %s", strings.Join(s.Names(), ", "))
	case s.guessed == nil:
		return Builtin(plainName), nil
	}
	return s.guessed, nil
}

// config is the part of tokenizer_config.json that templates need.
type config struct {
	templates []entry
	bos, eos  string
}

// entry is a named template in chat_template.
type entry struct{ Name, Template string }

// read goes through the file as a stream: its list of added tokens can have a megabyte.
func (c *config) read(r io.Reader) error {
	s := jsonscan.New(r, maxSource)
	return s.Object(func(key []byte) (err error) {
		var raw json.RawMessage
		switch string(key) {
		case "bos_token":
			c.bos, err = readToken(s)
		case "eos_token":
			c.eos, err = readToken(s)
		case "chat_template":
			if raw, err = s.Raw(4 * maxSource); err == nil {
				c.templates, err = readTemplates(raw)
			}
		default:
			err = s.Skip()
		}
		return err
	})
}

// readToken reads a token that is given as a string, as an object with its content, or as null.
func readToken(s *jsonscan.Scanner) (token string, err error) {
	const most = 64 << 10
	c, err := s.Peek()
	if err != nil {
		return "", err
	}
	if c != '{' {
		err = s.Decode(&token, most)
		return token, err
	}
	var object struct{ Content string }
	err = s.Decode(&object, most)
	return object.Content, err
}

// readTemplates reads chat_template: a string, a list of named ones, or an object of them.
func readTemplates(raw json.RawMessage) ([]entry, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return []entry{{defaultName, text}}, nil
	}
	var list []entry
	if json.Unmarshal(raw, &list) == nil {
		return list, nil
	}
	var object Object
	wrong := &checkpoint.FormatError{What: "chat_template is neither a string nor a list of named templates"}
	if object.UnmarshalJSON(raw) != nil {
		return nil, wrong
	}
	for _, f := range object.Fields {
		source, ok := f.Value.(string)
		if !ok {
			return nil, wrong
		}
		list = append(list, entry{f.Key, source})
	}
	return list, nil
}
