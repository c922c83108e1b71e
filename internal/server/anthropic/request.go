package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/sample"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/wire"
)

// body is a request for a message, or for the count of its tokens.
type body struct {
	Model       string     `json:"model"`
	MaxTokens   *int       `json:"max_tokens"`
	Messages    wire.Value `json:"messages"`
	System      wire.Value `json:"system"`
	Stop        []string   `json:"stop_sequences"`
	Temperature *float32   `json:"temperature"`
	TopP        *float32   `json:"top_p"`
	TopK        *int       `json:"top_k"`
	Stream      bool       `json:"stream"`
	Tools       wire.Value `json:"tools"`
	Choice      toolChoice `json:"tool_choice"`
	Thinking    struct {
		Type   string `json:"type"`
		Budget *int   `json:"budget_tokens"`
	} `json:"thinking"`
	MCP    wire.Value `json:"mcp_servers"`
	Format format     `json:"output_format"`
	Config struct {
		Format format `json:"format"`
	} `json:"output_config"`

	marked bool // something is marked with cache_control
	list   []spillway.Message
	tools  []tool
	strict bool // the schema of one of them is to be enforced
}

// toolChoice says whether tools are to be called.
type toolChoice struct {
	Type string `json:"type"`
	Name string `json:"name"`
	One  bool   `json:"disable_parallel_tool_use"`
}

// check reads what does not depend on the model. Counting needs no max_tokens.
func (b *body) check(answers bool) error {
	switch {
	case b.Model == "":
		return server.Invalid("model", "model is missing: name one of those that /v1/models lists")
	case answers && b.MaxTokens == nil:
		return server.Invalid("max_tokens", "max_tokens is missing")
	case b.MaxTokens != nil && *b.MaxTokens < 1:
		return wire.Errorf("max_tokens", "is %d; it must be positive", *b.MaxTokens)
	case b.MCP.Kind() != wire.Null:
		return server.Invalid("mcp_servers", "mcp_servers is not supported; call the servers' tools on your side")
	}
	if err := server.CheckStops("stop_sequences", b.Stop); err != nil {
		return err
	}
	switch b.Thinking.Type {
	case "", "enabled", "disabled", "adaptive":
	default:
		return wire.Errorf("thinking.type", "is %.40q; there are enabled, adaptive and disabled", b.Thinking.Type)
	}
	b.marked = bytes.Contains(b.Messages.Raw(), []byte(`"cache_control"`)) || bytes.Contains(b.System.Raw(), []byte(`"cache_control"`)) ||
		bytes.Contains(b.Tools.Raw(), []byte(`"cache_control"`))
	if err := b.readMessages(); err != nil {
		return err
	}
	return b.readTools()
}

// silent reports whether no thinking is to be shown.
func (b *body) silent() bool { return b.Thinking.Type == "disabled" }

// request puts the fields over the model's defaults.
func (b *body) request(h *pool.Held) (spillway.Request, error) {
	r := spillway.Request{Messages: b.list, Stop: b.Stop, Read: true}
	if b.MaxTokens != nil {
		r.MaxTokens = *b.MaxTokens
	}
	p := h.Defaults().Sampling
	if b.Temperature != nil {
		p.Temperature = *b.Temperature
	}
	if b.TopP != nil {
		p.TopP = *b.TopP
	}
	if b.TopK != nil {
		p.TopK = max(*b.TopK, 0)
	}
	p.Seed = rand.Uint64() //nolint:gosec // no secret
	var wrong *sample.ParamError
	if err := p.Validate(); errors.As(err, &wrong) {
		return r, wire.Errorf(strings.ReplaceAll(wrong.Name, "-", "_"), "is %v; it must be %s", wrong.Value, wrong.Want)
	} else if err != nil {
		return r, err
	}
	r.Sampling = &p
	switch b.Thinking.Type {
	case "disabled":
		r.TemplateArgs = json.RawMessage(`{"enable_thinking":false}`)
	case "enabled", "adaptive":
		r.TemplateArgs = json.RawMessage(`{"enable_thinking":true}`)
	}
	last := b.list[len(b.list)-1]
	r.Continue = last.Role == "assistant" && len(last.ToolCalls) == 0
	return r, b.useTools(&r)
}

// text is about the bytes of text that the prompt is made of.
func (b *body) text() (n int64) {
	for _, part := range []wire.Value{b.Messages, b.System, b.Tools} {
		raw := part.Raw()
		n += int64(len(raw) + 2*bytes.Count(raw, []byte(" "))) // some tokenizers write a space with three bytes
	}
	return n
}

// readMessages turns messages of blocks into those of templates: results of tools are messages of their own there.
func (b *body) readMessages() error {
	if b.System.Kind() != wire.Null {
		text, err := systemText(b.System)
		if err != nil {
			return wire.Within("system", err)
		}
		if text != "" {
			b.list = append(b.list, spillway.Message{Role: "system", Content: text})
		}
	}
	if b.Messages.Kind() == wire.Null {
		return server.Invalid("messages", "messages is missing: give a list of messages")
	}
	n := 0
	err := b.Messages.Each(func(_ int, v wire.Value) error {
		n++
		ms, err := readMessage(v)
		b.list = append(b.list, ms...)
		return err
	})
	if err == nil && n == 0 {
		err = wire.Errorf("", "is empty: give one message at least")
	}
	return wire.Within("messages", err)
}

// systemText is a text, or the texts of blocks.
func systemText(v wire.Value) (string, error) {
	if v.Kind() == wire.String {
		return v.Text()
	}
	if v.Kind() != wire.Array {
		return "", v.Expected("a string or a list of text blocks")
	}
	return textBlocks(v)
}

// textBlocks joins the texts of blocks that are all text.
func textBlocks(v wire.Value) (string, error) {
	var parts []string
	err := v.Each(func(_ int, e wire.Value) error {
		var block struct {
			Type string     `json:"type"`
			Text wire.Value `json:"text"`
		}
		if err := e.Into(&block); err != nil {
			return err
		}
		if block.Type != "text" {
			return wire.Errorf("type", "is %.40q; the models here take text alone", block.Type)
		}
		text, err := block.Text.Text()
		parts = append(parts, text)
		return wire.Within("text", err)
	})
	return strings.Join(parts, "\n"), err
}

// readMessage reads a turn.
func readMessage(v wire.Value) ([]spillway.Message, error) {
	if v.Kind() != wire.Object {
		return nil, v.Expected("an object with a role and a content")
	}
	var in struct {
		Role    string     `json:"role"`
		Content wire.Value `json:"content"`
	}
	if err := v.Into(&in); err != nil {
		return nil, err
	}
	if in.Role != "user" && in.Role != "assistant" {
		return nil, wire.Errorf("role", "is %.40q; there are user and assistant", in.Role)
	}
	switch in.Content.Kind() {
	case wire.String:
		text, err := in.Content.Text()
		return []spillway.Message{{Role: in.Role, Content: text}}, wire.Within("content", err)
	case wire.Array:
		t := turn{role: in.Role}
		err := in.Content.Each(func(_ int, e wire.Value) error { return t.block(e) })
		return t.end(), wire.Within("content", err)
	}
	return nil, wire.Within("content", in.Content.Expected("a string or a list of blocks"))
}

// A turn gathers the blocks of one message.
type turn struct {
	role    string
	done    []spillway.Message // results of tools
	texts   []string
	thought []string
	calls   []spillway.ToolCall
}

// block adds a block.
func (t *turn) block(v wire.Value) error {
	var b struct {
		Type     string     `json:"type"`
		Text     wire.Value `json:"text"`
		Thinking wire.Value `json:"thinking"`
		ID       string     `json:"id"`
		Name     string     `json:"name"`
		Input    wire.Value `json:"input"`
		UseID    string     `json:"tool_use_id"`
		Content  wire.Value `json:"content"`
		Failed   bool       `json:"is_error"`
	}
	if err := v.Into(&b); err != nil {
		return err
	}
	user := t.role == "user"
	switch {
	case b.Type == "text":
		text, err := b.Text.Text()
		t.texts = append(t.texts, text)
		return wire.Within("text", err)
	case b.Type == "thinking" && !user:
		text, err := b.Thinking.Text()
		t.thought = append(t.thought, text)
		return wire.Within("thinking", err)
	case b.Type == "redacted_thinking" && !user:
		return nil
	case b.Type == "tool_use" && !user:
		if b.Name == "" {
			return wire.Errorf("name", "is missing")
		}
		if b.Input.Kind() != wire.Object {
			return wire.Within("input", b.Input.Expected("an object"))
		}
		t.calls = append(t.calls, spillway.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input.Raw())})
		return nil
	case b.Type == "tool_result" && user:
		return t.result(b.UseID, b.Content, b.Failed)
	}
	return wire.Errorf("type", "is %.40q, which a message of the %s cannot have here; the models take text and calls of tools", b.Type, t.role)
}

// result adds what a tool has answered.
func (t *turn) result(id string, content wire.Value, failed bool) error {
	text, err := "", error(nil)
	if content.Kind() != wire.Null {
		text, err = systemText(content)
	}
	if failed {
		text = "Error: " + text
	}
	t.done = append(t.done, spillway.Message{Role: "tool", Content: text, ToolCallID: id})
	return wire.Within("content", err)
}

// end returns the turn's messages: results first, as they answer the turn before.
func (t *turn) end() []spillway.Message {
	if len(t.texts) == 0 && len(t.calls) == 0 && len(t.thought) == 0 && len(t.done) > 0 {
		return t.done
	}
	return append(t.done, spillway.Message{
		Role: t.role, Content: strings.Join(t.texts, "\n"), Reasoning: strings.Join(t.thought, "\n"), ToolCalls: t.calls,
	})
}
