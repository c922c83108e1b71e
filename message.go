package spillway

import (
	"errors"

	"github.com/spillway/spillway/internal/tokenizer"
)

// Message is a turn of a conversation.
type Message struct {
	Role    string `json:"role"` // system, user or assistant
	Content string `json:"content"`
}

// Render writes messages as the model's chat template does, ready for its answer.
func (c *Checkpoint) Render(ms []Message) (string, error) {
	return "", errors.New("no template")
}

func encodeOptions(tok *tokenizer.Tokenizer, text string, raw bool) tokenizer.Options {
	return tokenizer.Options{AddSpecial: raw, ParseSpecial: !raw}
}
