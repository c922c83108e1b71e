package spillway

import (
	"time"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/tokenizer"
)

// Message is a turn of a conversation.
type Message struct {
	Role    string `json:"role"` // system, user or assistant
	Content string `json:"content"`
}

// PromptCost is the memory that a byte of a prompt may take until it is ids: the text itself, what a
// chat template makes of it, the tokenizer's scratch, the ids. Who takes long prompts from elsewhere
// leases it by Runtime.Reserve.
const PromptCost = 48

const (
	templateBytes = 2 << 20 // what any template may make; the plan's room for the heap has it
	messageBytes  = 64      // of a message beside its text
)

// Render writes messages as the model's chat template does, ready for its answer.
func (c *Checkpoint) Render(ms []Message) (string, error) {
	in := chat.Input{AddGenerationPrompt: true, Now: time.Now(), MaxBytes: templateBytes}
	for _, m := range ms {
		in.Messages = append(in.Messages, chat.Text(m.Role, m.Content))
		in.MaxBytes += PromptCost * int64(messageBytes+len(m.Role)+len(m.Content))
	}
	if c.tok != nil {
		if id, ok := c.tok.BOS(); ok {
			in.BOS = c.tok.Token(id)
		}
		if eos := c.tok.EOS(); len(eos) > 0 {
			in.EOS = c.tok.Token(eos[0])
		}
	}
	return c.template.Render(in)
}

// TemplateName says where the chat template is from: "the model's", or the name of the default.
func (c *Checkpoint) TemplateName() string { return c.template.Name }

// DefaultTemplate reports whether the model came without a chat template.
func (c *Checkpoint) DefaultTemplate() bool { return c.template.Name == chat.DefaultName }

// encodeOptions: a template writes its control tokens out; raw text gets only those that the
// tokenizer adds by itself.
func encodeOptions(raw bool) tokenizer.Options {
	return tokenizer.Options{AddSpecial: raw, ParseSpecial: !raw}
}
