package anthropic

import (
	"encoding/json"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/wire"
)

// tool is a tool as templates know it.
type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// readTools reads the tools and what is said of calling them.
func (b *body) readTools() error {
	if b.Tools.Kind() != wire.Null {
		err := b.Tools.Each(func(_ int, v wire.Value) error {
			t, err := readTool(v)
			b.tools = append(b.tools, t)
			return err
		})
		if err != nil {
			return wire.Within("tools", err)
		}
	}
	switch c := b.Choice; c.Type {
	case "", "auto", "none":
		return nil
	case "any", "tool":
		if len(b.tools) == 0 {
			return wire.Errorf("tool_choice", "asks for a call, but there are no tools")
		}
		for _, t := range b.tools {
			if c.Type == "any" || t.Function.Name == c.Name {
				return nil
			}
		}
		return wire.Errorf("tool_choice.name", "is %.80q, which is none of the tools", c.Name)
	default:
		return wire.Errorf("tool_choice.type", "is %.40q; there are auto, any, tool and none", c.Type)
	}
}

func readTool(v wire.Value) (t tool, err error) {
	var in struct {
		Type        string     `json:"type"`
		Name        string     `json:"name"`
		Description string     `json:"description"`
		Schema      wire.Value `json:"input_schema"`
	}
	if err := v.Into(&in); err != nil {
		return t, err
	}
	switch {
	case in.Type != "" && in.Type != "custom":
		return t, wire.Errorf("type", "is %.40q; tools of the server are not supported, custom ones are", in.Type)
	case in.Name == "":
		return t, wire.Errorf("name", "is missing")
	case in.Schema.Kind() != wire.Object:
		return t, wire.Within("input_schema", in.Schema.Expected("a JSON schema"))
	}
	t.Type = "function"
	t.Function.Name, t.Function.Description, t.Function.Parameters = in.Name, in.Description, in.Schema.Raw()
	return t, nil
}

// useTools puts the tools into a request. Without them, text that looks like a call is text.
func (b *body) useTools(h *pool.Held, r *spillway.Request) error {
	if len(b.tools) == 0 || b.Choice.Type == "none" {
		r.Dialects.Tool = spillway.NoDialect
		return nil
	}
	raw, err := json.Marshal(b.tools)
	r.Tools = raw
	if err != nil {
		return err
	}
	return b.constrain(h, r)
}

// constrain makes the answer call a tool, if the choice says so.
func (b *body) constrain(*pool.Held, *spillway.Request) error {
	if b.Choice.Type == "any" || b.Choice.Type == "tool" {
		return server.Invalid("tool_choice", "tool_choice "+b.Choice.Type+" is not supported by this server: constrained decoding is missing; use auto or none")
	}
	return nil
}
