package chat

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spillway/spillway/internal/checkpoint"
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
// model without one gets Default. The template is compiled when it is first rendered.
func FromCatalog(c *checkpoint.Catalog) (*Template, error) {
	if c.Format == checkpoint.GGUF {
		if source, ok := c.Meta.String("tokenizer.chat_template"); ok && source != "" {
			return newTemplate("the model's (tokenizer.chat_template)", source), nil
		}
		return Default(), nil
	}
	return FromFiles(c.ReadFile)
}

// maxConfig bounds tokenizer_config.json, in bytes; it lists all added tokens.
const maxConfig = 8 << 20

// FromFiles returns the template of a folder, whose files read reads. It may be the only thing there.
func FromFiles(read func(name string, limit int64) ([]byte, error)) (*Template, error) {
	const file = "chat_template.jinja"
	source, err := read(file, maxSource)
	if err == nil {
		return newTemplate("the model's ("+file+")", string(source)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	config, err := read("tokenizer_config.json", maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return nil, err
	}
	text, err := configTemplate(config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	if text == "" {
		return Default(), nil
	}
	return newTemplate("the model's (tokenizer_config.json)", text), nil
}
