package openai

import (
	"encoding/json"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/wire"
)

// tooling are the fields about tools.
type tooling struct {
	Tools    wire.Value `json:"tools"`
	Choice   wire.Value `json:"tool_choice"`
	Parallel *bool      `json:"parallel_tool_calls"`
}

// A toolSet is what a request says of tools.
type toolSet struct {
	raw    json.RawMessage // for the template; nil: none
	names  []string
	choice string // none, auto, required, or function
	named  string // of the function
	one    bool   // call at most
	strict bool   // the schema of one of them is to be enforced
}

// demands reports whether the answer must call a tool.
func (t *toolSet) demands() bool { return t.choice == "required" || t.choice == "function" }

// read checks the fields.
func (f *tooling) read() (*toolSet, error) {
	t := &toolSet{choice: "auto", one: f.Parallel != nil && !*f.Parallel}
	if f.Tools.Kind() != wire.Null {
		err := f.Tools.Each(func(_ int, e wire.Value) error {
			name, strict, err := toolName(e)
			t.names, t.strict = append(t.names, name), t.strict || strict
			return err
		})
		if err != nil {
			return nil, wire.Within("tools", err)
		}
	}
	if err := f.choose(t); err != nil {
		return nil, wire.Within("tool_choice", err)
	}
	switch t.choice {
	case "function":
		t.one = true
	case "required": // small models that must call would not end: several calls are for those who ask for them
		t.one = f.Parallel == nil || !*f.Parallel
	}
	if t.choice != "none" && len(t.names) > 0 {
		t.raw = f.Tools.Raw()
	}
	return t, nil
}

// toolName checks a tool and returns its name, and whether its schema is to be enforced.
func toolName(v wire.Value) (name string, strict bool, err error) {
	var tool struct {
		Type     string `json:"type"`
		Function struct {
			Name       string     `json:"name"`
			Parameters wire.Value `json:"parameters"`
			Strict     bool       `json:"strict"`
		} `json:"function"`
	}
	if err := v.Into(&tool); err != nil {
		return "", false, err
	}
	switch p := tool.Function.Parameters; {
	case tool.Type != "function":
		return "", false, wire.Errorf("type", "is %.40q; there is function", tool.Type)
	case tool.Function.Name == "":
		return "", false, wire.Errorf("function.name", "is missing")
	case p.Kind() != wire.Null && p.Kind() != wire.Object:
		return "", false, wire.Within("function.parameters", p.Expected("a JSON schema"))
	}
	return tool.Function.Name, tool.Function.Strict, nil
}

// choose reads the choice.
func (f *tooling) choose(t *toolSet) error {
	switch f.Choice.Kind() {
	case wire.Null:
		return nil
	case wire.String:
		t.choice, _ = f.Choice.Text()
		if t.choice != "none" && t.choice != "auto" && t.choice != "required" {
			return wire.Errorf("", "is %.40q; there are none, auto, required, and an object with the name of a function", t.choice)
		}
	case wire.Object:
		var choice struct {
			Type     string `json:"type"`
			Name     string `json:"name"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		if err := f.Choice.Into(&choice); err != nil {
			return err
		}
		if choice.Type != "function" {
			return wire.Errorf("type", "is %.40q; there is function", choice.Type)
		}
		if t.choice, t.named = "function", choice.Function.Name; t.named == "" {
			t.named = choice.Name
		}
	default:
		return f.Choice.Expected("a string or an object")
	}
	return t.checkChoice()
}

func (t *toolSet) checkChoice() error {
	if t.demands() && len(t.names) == 0 {
		return wire.Errorf("", "asks for a call, but there are no tools")
	}
	for _, name := range t.names {
		if name == t.named {
			return nil
		}
	}
	if t.choice == "function" {
		return wire.Errorf("", "names %.80q, which is none of the tools", t.named)
	}
	return nil
}

// apply puts the tools into a request. Without tools, text that looks like a call is text.
func (t *toolSet) apply(r *spillway.Request) {
	r.Read, r.Tools = true, t.raw
	if t.raw == nil {
		r.Dialects.Tool = spillway.NoDialect
	}
}

// readFlat checks tools as the responses API has them, without an object around the function, and makes
// those that templates know of them.
func (f *tooling) readFlat() (*toolSet, error) {
	if f.Tools.Kind() == wire.Null {
		return f.read()
	}
	var list []json.RawMessage
	err := f.Tools.Each(func(_ int, e wire.Value) error {
		var tool struct {
			Type string `json:"type"`
		}
		if err := e.Into(&tool); err != nil {
			return err
		}
		if tool.Type != "function" {
			return wire.Errorf("type", "is %.40q; there is function", tool.Type)
		}
		var inner, outer rewriter
		_ = e.Fields(func(key string, m wire.Value) error { // it is an object
			if key != "type" {
				inner.raw(key, m.Raw())
			}
			return nil
		})
		outer.text("type", "function")
		outer.raw("function", inner.end())
		list = append(list, outer.end())
		return nil
	})
	if err != nil {
		return nil, wire.Within("tools", err)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	v, err := wire.Parse(raw)
	if err != nil {
		return nil, err
	}
	nested := *f
	nested.Tools = v
	return nested.read()
}
