package openai

import (
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/wire"
)

// constrained are the fields that say which form an answer must have: OpenAI's, those of vLLM (guided_*,
// structured_outputs, structural_tag) and of llama.cpp (grammar, json_schema).
type constrained struct {
	Format     responseFormat `json:"response_format"`
	Structured structured     `json:"structured_outputs"`
	GuidedJSON wire.Value     `json:"guided_json"`
	GuidedRE   *string        `json:"guided_regex"`
	GuidedOne  []string       `json:"guided_choice"`
	GuidedBNF  *string        `json:"guided_grammar"`
	StructTag  wire.Value     `json:"structural_tag"`
	LlamaBNF   *string        `json:"grammar"`
	LlamaJSON  wire.Value     `json:"json_schema"`
}

// structured is vLLM's structured_outputs.
type structured struct {
	JSON    wire.Value `json:"json"`
	Regex   *string    `json:"regex"`
	Choice  []string   `json:"choice"`
	Grammar *string    `json:"grammar"`
	Object  bool       `json:"json_object"`
	Tag     wire.Value `json:"structural_tag"`
}

// responseFormat is what response_format says, and text.format of responses, where the schema stands beside the type.
type responseFormat struct {
	Type    string
	schema  wire.Value
	grammar *string
	pattern *string
	raw     wire.Value // all of it
}

// ReadJSON is part of wire.Reader.
func (f *responseFormat) ReadJSON(v wire.Value) error {
	if v.Kind() != wire.Object {
		return v.Expected("an object with a type")
	}
	var w struct {
		Type    string `json:"type"`
		Wrapped struct {
			Schema wire.Value `json:"schema"`
		} `json:"json_schema"`
		Schema  wire.Value `json:"schema"`
		Grammar *string    `json:"grammar"`
		Pattern *string    `json:"pattern"`
	}
	err := v.Into(&w)
	if w.Schema.Kind() == wire.Null {
		w.Schema = w.Wrapped.Schema
	}
	*f = responseFormat{w.Type, w.Schema, w.Grammar, w.Pattern, v}
	return err
}

// form is what the format asks for.
func (f *responseFormat) form() (form spillway.Form, err error) {
	switch f.Type {
	case "", "text":
		return form, nil
	case "json_object":
		if f.schema.Kind() == wire.Null {
			return spillway.Form{Kind: spillway.FormJSONObject}, nil
		}
		return schemaForm(f.schema)
	case "json_schema":
		if f.schema.Kind() == wire.Null {
			return form, wire.Errorf("schema", "is missing")
		}
		return schemaForm(f.schema)
	case "regex":
		if f.pattern == nil {
			return form, wire.Errorf("pattern", "is missing")
		}
		return spillway.Form{Kind: spillway.FormRegex, Text: *f.pattern}, nil
	case "grammar":
		if f.grammar == nil {
			return form, wire.Errorf("grammar", "is missing")
		}
		return grammarForm(*f.grammar), nil
	case "structural_tag":
		return spillway.Form{Kind: spillway.FormStructuralTag, Text: string(f.raw.Raw())}, nil
	}
	return form, wire.Errorf("type", "is %.40q; there are text, json_object, json_schema, regex, grammar and structural_tag", f.Type)
}

// schemaForm is a JSON Schema, or its text.
func schemaForm(v wire.Value) (spillway.Form, error) {
	text, err := jsonText(v)
	return spillway.Form{Kind: spillway.FormJSONSchema, Text: text}, err
}

// tagForm is a structural tag, or its text.
func tagForm(v wire.Value) (spillway.Form, error) {
	text, err := jsonText(v)
	return spillway.Form{Kind: spillway.FormStructuralTag, Text: text}, err
}

// jsonText is JSON that may have been given as a string.
func jsonText(v wire.Value) (string, error) {
	if v.Kind() == wire.String {
		return v.Text()
	}
	if v.Kind() != wire.Object && v.Kind() != wire.Bool {
		return "", v.Expected("an object, or its text")
	}
	return string(v.Raw()), nil
}

// grammarForm is a grammar in one of two notations: rules of GBNF are written with ::=, those of Lark with a colon.
func grammarForm(text string) spillway.Form {
	if strings.Contains(text, "::=") {
		return spillway.Form{Kind: spillway.FormGBNF, Text: text}
	}
	return spillway.Form{Kind: spillway.FormLark, Text: text}
}

func regexForm(text string) spillway.Form { return spillway.Form{Kind: spillway.FormRegex, Text: text} }

func gbnfForm(text string) spillway.Form { return spillway.Form{Kind: spillway.FormGBNF, Text: text} }

// given is a field that may ask for a form.
type given struct {
	name string
	is   bool
	form func() (spillway.Form, error)
}

func ofValue(name string, v wire.Value, form func(wire.Value) (spillway.Form, error)) given {
	return given{name, v.Kind() != wire.Null, func() (spillway.Form, error) { return form(v) }}
}

func ofText(name string, s *string, kind func(string) spillway.Form) given {
	return given{name, s != nil, func() (spillway.Form, error) { return kind(*s), nil }}
}

func ofChoice(name string, list []string) given {
	return given{name, list != nil, func() (spillway.Form, error) {
		if len(list) == 0 {
			return spillway.Form{}, wire.Errorf("", "is empty; give one text at least")
		}
		return spillway.Form{Kind: spillway.FormChoice, Choices: list}, nil
	}}
}

// fields are all that may ask for a form.
func (c *constrained) fields(format string) []given {
	s := &c.Structured
	return []given{
		{format, c.Format.Type != "" && c.Format.Type != "text", c.Format.form},
		ofValue("guided_json", c.GuidedJSON, schemaForm), ofText("guided_regex", c.GuidedRE, regexForm), ofChoice("guided_choice", c.GuidedOne),
		ofText("guided_grammar", c.GuidedBNF, grammarForm), ofValue("structural_tag", c.StructTag, tagForm),
		ofText("grammar", c.LlamaBNF, gbnfForm), ofValue("json_schema", c.LlamaJSON, schemaForm),
		ofValue("structured_outputs.json", s.JSON, schemaForm), ofText("structured_outputs.regex", s.Regex, regexForm),
		ofChoice("structured_outputs.choice", s.Choice), ofText("structured_outputs.grammar", s.Grammar, grammarForm),
		ofValue("structured_outputs.structural_tag", s.Tag, tagForm),
		{"structured_outputs.json_object", s.Object, func() (spillway.Form, error) { return spillway.Form{Kind: spillway.FormJSONObject}, nil }},
	}
}

// form is what the fields ask for, and the field that does; format is the name of the first.
func (c *constrained) form(format string) (form spillway.Form, field string, err error) {
	for _, f := range c.fields(format) {
		switch {
		case !f.is:
			continue
		case field != "":
			return form, "", server.Invalid(f.name, f.name+" and "+field+" say both what the answer must be; give one of them")
		}
		field = f.name
		if form, err = f.form(); err != nil {
			return form, "", wire.Within(field, err)
		}
	}
	return form, field, nil
}

// limit is what the fields, and the choice of tools, demand of the answers to a prepared request. format is the field
// that says which form they have.
func (s *sampling) limit(x *server.Exchange, h held, r *spillway.Request, tools *toolSet, format string) (*spillway.Limit, error) {
	form, field, err := s.constrained.form(format)
	if err != nil {
		return nil, err
	}
	if field != "" && s.Search {
		return nil, server.Invalid(field, field+" does not go with use_beam_search")
	}
	d := spillway.Demand{Form: form, Name: tools.named, OneCall: tools.one, Strict: tools.strict}
	switch tools.choice {
	case "required":
		d.Call = spillway.CallRequired
	case "function":
		d.Call = spillway.CallNamed
	}
	return x.Constrain(h.Held, r, d, field)
}
