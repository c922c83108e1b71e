package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/vfs"
)

// chatML is the format of models that come without a template: most of those that were tuned for
// conversations and say nothing use it.
const chatML = `{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// DefaultName is the Name of the template for models that have none.
const DefaultName = "chatml (default)"

// Default returns the template for models that have none.
func Default() *Template { return newTemplate(DefaultName, chatML) }

// FromCatalog returns the model's template: tokenizer.chat_template of a GGUF file; of a folder
// chat_template.jinja, or chat_template in tokenizer_config.json, of several the one named "default". A
// model without one gets Default. The template is read when it is first rendered.
func FromCatalog(c *checkpoint.Catalog) (*Template, error) {
	if c.Format == checkpoint.GGUF {
		if source, ok := c.Meta.String("tokenizer.chat_template"); ok && source != "" {
			return newTemplate("the model's (tokenizer.chat_template)", source), nil
		}
		return Default(), nil
	}
	return fromFiles(c.OpenBeside)
}

// FromFolder returns the template of a folder, which may hold nothing else.
func FromFolder(fsys vfs.FS, dir string) (*Template, error) {
	return fromFiles(func(name string) (vfs.File, error) { return fsys.Open(filepath.Join(dir, name)) })
}

func fromFiles(open func(name string) (vfs.File, error)) (*Template, error) {
	var config config
	if _, err := stream(open, "tokenizer_config.json", config.read); err != nil {
		return nil, err
	}
	const file = "chat_template.jinja"
	var source []byte
	found, err := stream(open, file, func(r io.Reader) (err error) {
		source, err = io.ReadAll(io.LimitReader(r, maxSource+1))
		return err
	})
	if err != nil {
		return nil, err
	}
	t := Default()
	switch {
	case found:
		t = newTemplate("the model's ("+file+")", string(source))
	case config.template != "":
		t = newTemplate("the model's (tokenizer_config.json)", config.template)
	}
	t.BOS, t.EOS = config.bos, config.eos
	return t, nil
}

// stream calls read with the content of a file. It reports whether the file is there.
func stream(open func(name string) (vfs.File, error), name string, read func(io.Reader) error) (bool, error) {
	file, err := open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	const buffer = 32 << 10
	r, err := vfs.NewReader(file, 0, file.Size(), mem.AlignUp(make([]byte, buffer+file.Align()), file.Align()))
	if err != nil {
		return false, err
	}
	if err := read(r); err != nil {
		return false, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return true, nil
}

// config is the part of tokenizer_config.json that templates need.
type config struct{ template, bos, eos string }

// damaged makes an error of what is wrong with JSON.
func damaged(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return &checkpoint.FormatError{What: "damaged JSON: " + err.Error()}
	}
	return err
}

// read goes through the file token by token: its list of added tokens can have a megabyte.
func (c *config) read(r io.Reader) error {
	d := json.NewDecoder(r)
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		if err == nil {
			err = &checkpoint.FormatError{What: "it is no JSON object"}
		}
		return damaged(err)
	}
	for d.More() {
		key, err := d.Token()
		if err == nil {
			err = c.member(d, key)
		}
		if err != nil {
			return damaged(err)
		}
	}
	return nil
}

func (c *config) member(d *json.Decoder, key json.Token) error {
	switch key {
	case "bos_token":
		return decodeToken(d, &c.bos)
	case "eos_token":
		return decodeToken(d, &c.eos)
	case "chat_template":
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		var err error
		c.template, err = pick(raw)
		return err
	}
	return skip(d)
}

// skip passes a value of any kind.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// decodeToken reads a token that is given as a string, as an object with its content, or as null.
func decodeToken(d *json.Decoder, into *string) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	var object struct{ Content string }
	if len(raw) > 0 && raw[0] == '{' {
		err := json.Unmarshal(raw, &object)
		*into = object.Content
		return err
	}
	return json.Unmarshal(raw, into)
}

// pick returns the template of chat_template: a string, or a list of named ones.
func pick(raw json.RawMessage) (string, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var named []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &named); err != nil {
		return "", &checkpoint.FormatError{What: "chat_template is neither a string nor a list of named templates"}
	}
	for _, n := range named {
		if n.Name == "default" || len(named) == 1 {
			return n.Template, nil
		}
	}
	return "", &checkpoint.FormatError{What: "none of the chat templates is named default"}
}
