package openai

import (
	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/wire"
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

// A limit makes what limits the tokens of an answer, anew for each; nil: nothing does.
type limit func() spillway.Constraint

// constraint is the one of one answer.
func (l limit) constraint() spillway.Constraint {
	if l == nil {
		return nil
	}
	return l()
}

// limit is what the fields, and the choice of tools, ask of answers.
func (c *constrained) limit(_ held, tools *toolSet) (limit, error) {
	switch c.Format.Type {
	case "", "text":
	case "json_object", "json_schema", "grammar", "structural_tag":
		return nil, server.Invalid("response_format", "response_format "+c.Format.Type+" is not supported by this server: constrained decoding is missing; use text")
	default:
		return nil, wire.Errorf("response_format.type", "is %.40q; there is text", c.Format.Type)
	}
	for _, f := range []struct {
		v    wire.Value
		name string
	}{
		{c.Structured, "structured_outputs"}, {c.JSON, "guided_json"}, {c.Regex, "guided_regex"}, {c.Choice, "guided_choice"},
		{c.Grammar, "guided_grammar"}, {c.Tag, "structural_tag"}, {c.GBNF, "grammar"},
	} {
		if f.v.Kind() != wire.Null {
			return nil, server.Invalid(f.name, f.name+" is not supported by this server: constrained decoding is missing; leave it out")
		}
	}
	if demand := tools.demand(); demand != "" {
		return nil, server.Invalid("tool_choice", demand+" is not supported by this server: constrained decoding is missing; use auto or none")
	}
	return nil, nil
}
