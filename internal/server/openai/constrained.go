package openai

import (
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/wire"

	"github.com/spillway/spillway"
)

// constrained are the fields that say which form an answer must have.
type constrained struct {
	Format     responseFormat `json:"response_format"`
	Structured wire.Value     `json:"structured_outputs"`
	JSON       wire.Value     `json:"guided_json"`
	Regex      wire.Value     `json:"guided_regex"`
	Choice     wire.Value     `json:"guided_choice"`
	Grammar    wire.Value     `json:"guided_grammar"`
	Tag        wire.Value     `json:"structural_tag"`
	GBNF       wire.Value     `json:"grammar"`
}

// responseFormat is what response_format says.
type responseFormat struct {
	Type string `json:"type"`
}

// constraint puts what the fields ask for into a request. choice is what a tool choice demands, by the name
// of its field; empty: nothing.
func (c *constrained) constraint(_ *pool.Held, _ *spillway.Request, choice string) error {
	switch c.Format.Type {
	case "", "text":
	case "json_object", "json_schema", "grammar", "structural_tag":
		return server.Invalid("response_format", "response_format "+c.Format.Type+" is not supported by this server: constrained decoding is missing; use text")
	default:
		return wire.Errorf("response_format.type", "is %.40q; there is text", c.Format.Type)
	}
	for _, f := range []struct {
		v    wire.Value
		name string
	}{
		{c.Structured, "structured_outputs"}, {c.JSON, "guided_json"}, {c.Regex, "guided_regex"}, {c.Choice, "guided_choice"},
		{c.Grammar, "guided_grammar"}, {c.Tag, "structural_tag"}, {c.GBNF, "grammar"},
	} {
		if f.v.Kind() != wire.Null {
			return server.Invalid(f.name, f.name+" is not supported by this server: constrained decoding is missing; leave it out")
		}
	}
	if choice != "" {
		return server.Invalid("tool_choice", choice+" is not supported by this server: constrained decoding is missing; use auto or none")
	}
	return nil
}
