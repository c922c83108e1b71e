package spillway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/tokenizer"
)

// Message is a turn of a conversation. In JSON it has the shape of OpenAI's chat completions; decoding one
// keeps the whole of it in Raw.
type Message struct {
	Role       string     `json:"role"` // system, user, assistant, tool or what else the template knows
	Content    string     `json:"content"`
	Name       string     `json:"name,omitempty"`
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`   // that the assistant made
	ToolCallID string     `json:"tool_call_id,omitempty"` // of the call that the message answers
	// Raw is the message as a JSON object, if given: the template sees its members in this order, and the
	// fields above do not count. Content may be a list of parts there, and members may be added.
	Raw json.RawMessage `json:"-"`
}

// ToolCall is a call that a model asks for.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // JSON
}

// toolCall is a ToolCall as it is written.
type toolCall struct {
	ID       string `json:"id,omitempty"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// MarshalJSON writes {"id", "type", "function": {"name", "arguments"}}.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	w := toolCall{ID: c.ID, Type: "function"}
	w.Function.Name, w.Function.Arguments = c.Name, c.Arguments
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes; arguments may be an object, too.
func (c *ToolCall) UnmarshalJSON(b []byte) error {
	var r struct {
		ID       string
		Function struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	*c = ToolCall{r.ID, r.Function.Name, string(r.Function.Arguments)}
	var text string
	if json.Unmarshal(r.Function.Arguments, &text) == nil {
		c.Arguments = text
	}
	return nil
}

// bare is a Message without its methods.
type bare Message

// MarshalJSON writes Raw if it is given, else the fields.
func (m Message) MarshalJSON() ([]byte, error) {
	if m.Raw != nil {
		return m.Raw, nil
	}
	return json.Marshal(bare(m))
}

// UnmarshalJSON reads a message and keeps it in Raw. The texts of a content of several parts are joined in
// Content.
func (m *Message) UnmarshalJSON(b []byte) error {
	fields := struct {
		*bare
		Content json.RawMessage `json:"content"`
	}{bare: &bare{}}
	if err := json.Unmarshal(b, &fields); err != nil {
		return fmt.Errorf("a message: %w", err)
	}
	*m = Message(*fields.bare)
	m.Content, m.Raw = contentText(fields.Content), append(json.RawMessage(nil), b...)
	return nil
}

// contentText is the text of a content: a string, or parts with texts.
func contentText(raw json.RawMessage) string {
	var text string
	var parts []struct{ Text string }
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &parts) == nil {
		for _, p := range parts {
			text += p.Text
		}
	}
	return text
}

// object is the message as a template sees it.
func (m Message) object() (*chat.Object, error) {
	if m.Raw == nil && m.Name == "" && m.Reasoning == "" && len(m.ToolCalls) == 0 && m.ToolCallID == "" {
		return chat.Text(m.Role, m.Content), nil
	}
	raw, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	o := new(chat.Object)
	if err := o.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("a message with role %.40q: %w", m.Role, err)
	}
	return o, nil
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
	p, err := c.render(Request{Messages: ms})
	return p.text, err
}

// prompt is a text for the tokenizer.
type prompt struct {
	text    string
	user    []chat.Span // parts that came from the request: control tokens in them are text
	special bool        // the tokenizer adds its own tokens around the text
	parse   bool        // control tokens that are written out are tokens
}

// render makes the prompt of a request.
func (c *Checkpoint) render(r Request) (prompt, error) {
	if r.Raw {
		return prompt{text: r.Prompt, special: true, parse: r.ParseSpecial}, nil
	}
	in, err := c.input(r)
	if err != nil {
		return prompt{}, err
	}
	t, err := c.templates.For(len(in.Tools) > 0)
	if err != nil {
		return prompt{}, err
	}
	p := prompt{special: t.Bare, parse: true}
	if p.text, p.user, err = t.RenderRequest(in); err != nil {
		return prompt{}, err
	}
	if r.ParseSpecial {
		p.user = nil
	}
	return p, nil
}

// input is what the template of a request is given.
func (c *Checkpoint) input(r Request) (chat.Input, error) {
	in := chat.Input{AddGenerationPrompt: !r.Continue, ContinueFinalMessage: r.Continue, Now: r.Now, MaxBytes: templateBytes}
	if in.Now.IsZero() {
		in.Now = time.Now()
	}
	for _, m := range r.messages() {
		o, err := m.object()
		if err != nil {
			return in, err
		}
		in.Messages = append(in.Messages, o)
		in.MaxBytes += PromptCost * (messageBytes + int64(len(m.Raw)+len(m.Role)+len(m.Content)+len(m.Reasoning)))
		for _, call := range m.ToolCalls {
			in.MaxBytes += PromptCost * (messageBytes + int64(len(call.Name)+len(call.Arguments)))
		}
	}
	err := cmp.Or(setJSON("tools", "a list", r.Tools, &in.Tools), setJSON("template variables", "an object", r.TemplateArgs, &in.Kwargs))
	in.MaxBytes += PromptCost * int64(len(r.Tools)+len(r.TemplateArgs))
	if in.Kwargs != nil {
		in.MaxBytes += chat.SizeOf(in.Kwargs)
		if ask, ok := in.Kwargs.Get("add_generation_prompt").(bool); ok {
			in.AddGenerationPrompt = ask && !r.Continue
		}
	}
	if c.tok != nil {
		if id, ok := c.tok.BOS(); ok {
			in.BOS = c.tok.Token(id)
		}
		if eos := c.tok.EOS(); len(eos) > 0 {
			in.EOS = c.tok.Token(eos[0])
		}
	}
	return in, err
}

// setJSON reads JSON with the keys of objects in order; none and null leave what is there.
func setJSON[T any](what, kind string, raw json.RawMessage, into *T) error {
	if len(raw) == 0 {
		return nil
	}
	v, err := chat.ParseJSON(raw)
	if err != nil {
		return fmt.Errorf("the %s: %w", what, err)
	}
	t, ok := v.(T)
	if !ok && v != nil {
		return fmt.Errorf("the %s are not %s", what, kind)
	}
	*into = t
	return nil
}

// UseTemplate chooses the chat template by its name: one of the model's own, or one of those that are built
// in. Call it before the model is started.
func (c *Checkpoint) UseTemplate(name string) error { return c.templates.Use(name) }

// UseTemplateText chooses a chat template by its text; name is for reports.
func (c *Checkpoint) UseTemplateText(name, text string) error {
	return c.templates.UseSource(name, text)
}

// TemplateName says where the chat template is from: "the model's (…)", the name of a built-in one, or
// what UseTemplateText was told.
func (c *Checkpoint) TemplateName() string {
	t, err := c.templates.For(false)
	if err != nil {
		return ""
	}
	return t.Name
}

// DefaultTemplate reports whether the model came without a chat template, and none was chosen.
func (c *Checkpoint) DefaultTemplate() bool { return c.templates.Guessed() }

// guessTemplate looks at what the vocabulary suggests for a model without a template.
func (c *Checkpoint) guessTemplate() {
	c.templates.Guess(func(token string) bool {
		if c.tok == nil {
			return false
		}
		_, ok := c.tok.ID(token)
		return ok
	})
}

// encode turns a prompt into ids.
func (c *Checkpoint) encode(p prompt) ([]int32, error) {
	tok, err := c.Tokenizer()
	if err != nil {
		return nil, err
	}
	ids, err := encodeSpans(tok, p)
	if err == nil && len(ids) == 0 {
		err = errors.New("the prompt is empty")
	}
	return ids, err
}

// encodeSpans encodes a prompt: a template writes its control tokens out; what came from the request has
// none.
func encodeSpans(tok *tokenizer.Tokenizer, p prompt) ([]int32, error) {
	plain := make([]tokenizer.Span, len(p.user))
	for i, s := range p.user {
		plain[i] = tokenizer.Span(s)
	}
	return tok.EncodeSpans(nil, p.text, tokenizer.Options{AddSpecial: p.special, ParseSpecial: p.parse}, plain)
}
