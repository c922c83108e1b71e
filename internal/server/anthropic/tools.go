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
			t, strict, err := readTool(v)
			b.tools, b.strict = append(b.tools, t), b.strict || strict
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

func readTool(v wire.Value) (t tool, strict bool, err error) {
	var in struct {
		Type        string     `json:"type"`
		Name        string     `json:"name"`
		Description string     `json:"description"`
		Schema      wire.Value `json:"input_schema"`
		Strict      bool       `json:"strict"`
	}
	if err := v.Into(&in); err != nil {
		return t, false, err
	}
	switch {
	case in.Type != "" && in.Type != "custom":
		return t, false, wire.Errorf("type", "is %.40q; tools of the server are not supported, custom ones are", in.Type)
	case in.Name == "":
		return t, false, wire.Errorf("name", "is missing")
	case in.Schema.Kind() != wire.Object:
		return t, false, wire.Within("input_schema", in.Schema.Expected("a JSON schema"))
	}
	t.Type = "function"
	t.Function.Name, t.Function.Description, t.Function.Parameters = in.Name, in.Description, in.Schema.Raw()
	return t, in.Strict, nil
}

// useTools puts the tools into a request. Without them, text that looks like a call is text.
func (b *body) useTools(r *spillway.Request) error {
	if len(b.tools) == 0 || b.Choice.Type == "none" {
		r.Dialects.Tool = spillway.NoDialect
		return nil
	}
	raw, err := json.Marshal(b.tools)
	r.Tools = raw
	if err != nil {
		return err
	}
	return nil
}

// constrain holds the answer to a prepared request to what it demands.
func (b *body) constrain(x *server.Exchange, h *pool.Held, r *spillway.Request) error {
	form, field, err := b.form()
	if err != nil {
		return err
	}
	d := spillway.Demand{Form: form, Name: b.Choice.Name, OneCall: b.Choice.One || b.Choice.Type == "tool" || b.Choice.Type == "any", Strict: b.strict}
	if r.Tools != nil {
		switch b.Choice.Type {
		case "any":
			d.Call = spillway.CallRequired
		case "tool":
			d.Call = spillway.CallNamed
		}
	}
	limit, err := x.Constrain(h, r, d, field)
	r.Constraint = limit.Constraint()
	return err
}

// format is a form of the content.
type format struct {
	Type   string     `json:"type"`
	Schema wire.Value `json:"schema"`
}

// form is what the content must be, and the field that says so.
func (b *body) form() (form spillway.Form, field string, err error) {
	f, field := b.Config.Format, "output_config.format"
	if f.Type == "" {
		f, field = b.Format, "output_format"
	}
	switch {
	case f.Type == "":
		return form, "", nil
	case f.Type != "json_schema":
		return form, field, wire.Errorf(field+".type", "is %.40q; there is json_schema", f.Type)
	case f.Schema.Kind() != wire.Object:
		return form, field, wire.Within(field+".schema", f.Schema.Expected("a JSON schema"))
	}
	return spillway.Form{Kind: spillway.FormJSONSchema, Text: string(f.Schema.Raw())}, field, nil
}
