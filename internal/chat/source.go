package chat

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/jsonscan"
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
	if c.Format != checkpoint.GGUF {
		return fromFiles(c.OpenBeside)
	}
	const key = "tokenizer.chat_template"
	if source, ok := c.Meta.String(key); ok && source != "" {
		return newTemplate("the model's ("+key+")", source), nil
	} else if ok {
		return Default(), nil
	}
	for k := range c.Meta.Keys() {
		if k == key {
			return nil, &checkpoint.FormatError{Path: c.Path, Where: "key " + key, What: fmt.Sprintf("it is no string of at most %d bytes", maxSource)}
		}
	}
	return Default(), nil
}

func fromFiles(open vfs.Opener) (*Template, error) {
	var config config
	if _, err := open.Stream("tokenizer_config.json", config.read); err != nil {
		return nil, err
	}
	const file = "chat_template.jinja"
	var source []byte
	found, err := open.Stream(file, func(r io.Reader) (err error) {
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

// config is the part of tokenizer_config.json that templates need.
type config struct{ template, bos, eos string }

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
			if raw, err = s.Raw(2 * maxSource); err == nil {
				c.template, err = pick(raw)
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
