package chat

import (
	"encoding/json"
	"errors"
)

// configTemplate returns chat_template of a tokenizer_config.json: a string, or a list of named ones.
func configTemplate(config []byte) (string, error) {
	var c struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return "", err
	}
	if len(c.Template) == 0 || string(c.Template) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(c.Template, &text) == nil {
		return text, nil
	}
	var named []struct{ Name, Template string }
	if err := json.Unmarshal(c.Template, &named); err != nil {
		return "", errors.New("chat_template is neither a string nor a list of named templates")
	}
	for _, n := range named {
		if n.Name == "default" {
			return n.Template, nil
		}
	}
	if len(named) == 1 {
		return named[0].Template, nil
	}
	return "", errors.New("none of the chat templates is named default")
}
