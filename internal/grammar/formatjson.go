package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spillway/spillway/internal/grammar/schema"
)

// formatJSON is a part of a structural tag as it is written in requests.
type formatJSON struct {
	Type           string          `json:"type"`
	Value          *string         `json:"value"`
	JSONSchema     json.RawMessage `json:"json_schema"`
	Style          string          `json:"style"`
	AnyOrder       bool            `json:"any_order"`
	MaxSpace       *int            `json:"max_whitespace_cnt"`
	Grammar        *string         `json:"grammar"`
	Syntax         string          `json:"syntax"`
	Pattern        *string         `json:"pattern"`
	Elements       []formatJSON    `json:"elements"`
	Content        *formatJSON     `json:"content"`
	Begin          json.RawMessage `json:"begin"`
	End            json.RawMessage `json:"end"`
	Token          json.RawMessage `json:"token"`
	Triggers       []string        `json:"triggers"`
	TriggerTokens  json.RawMessage `json:"trigger_tokens"` // those that the tags begin with
	Tags           []formatJSON    `json:"tags"`
	Separator      string          `json:"separator"`
	AtLeastOne     bool            `json:"at_least_one"`
	StopAfterFirst bool            `json:"stop_after_first"`
	Excludes       []string        `json:"excludes"`
	MaxChars       *int            `json:"max_chars"`
	Min            int             `json:"min"`
	Max            *int            `json:"max"`
	Rules          []dispatchJSON  `json:"rules"`
	Loop           *bool           `json:"loop"`

	Structures []structureJSON `json:"structures"` // of the older form
	Format     *formatJSON     `json:"format"`
}

// structureJSON is a tag of the older form.
type structureJSON struct {
	Begin  string          `json:"begin"`
	Schema json.RawMessage `json:"schema"`
	End    string          `json:"end"`
}

// dispatchJSON is a pair of a pattern and a part.
type dispatchJSON struct {
	pattern string
	then    formatJSON
}

func (d *dispatchJSON) UnmarshalJSON(text []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(text, &pair); err != nil || len(pair) != 2 {
		return fmt.Errorf("a rule is a pair of a pattern and a format")
	}
	if err := json.Unmarshal(pair[0], &d.pattern); err != nil {
		return err
	}
	return strict(pair[1], &d.then)
}

// strict refuses fields that are not known: nothing is ignored in silence.
func strict(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// ParseFormat reads a structural tag: {"type": "structural_tag", "format": {...}}, the older form with
// structures and triggers, or a format by itself. o is how JSON in it is written.
func ParseFormat(text []byte, o schema.Options) (Format, error) {
	var f formatJSON
	if err := strict(text, &f); err != nil {
		return nil, fmt.Errorf("grammar: structural tag: %w", err)
	}
	p := formatParser{o}
	out, err := p.top(&f)
	if err != nil {
		return nil, fmt.Errorf("grammar: structural tag: %w", err)
	}
	return out, nil
}

type formatParser struct{ schema schema.Options }

func (p *formatParser) top(f *formatJSON) (Format, error) {
	switch {
	case f.Type != "structural_tag":
		return p.parse(f)
	case f.Format != nil:
		return p.parse(f.Format)
	case len(f.Structures) == 0:
		return nil, fmt.Errorf("neither format nor structures")
	}
	t := Triggered{Triggers: f.Triggers}
	for _, s := range f.Structures {
		t.Tags = append(t.Tags, Tag{Literal(s.Begin), p.json(s.Schema, p.schema), []Format{Literal(s.End)}})
	}
	return t, nil
}

func (p *formatParser) json(text []byte, o schema.Options) Format {
	if len(text) == 0 {
		text = []byte("true")
	}
	return Leaf{Kind: JSONSchema, Text: string(text), Schema: o}
}

func (p *formatParser) parse(f *formatJSON) (Format, error) {
	switch f.Type {
	case "const_string":
		if f.Value != nil {
			return Literal(*f.Value), nil
		}
		return nil, fmt.Errorf("const_string: no value")
	case "json_schema":
		return p.jsonSchema(f)
	case "any_text":
		return p.anyText(f)
	case "grammar":
		return p.grammar(f)
	case "regex":
		if f.Pattern != nil {
			return Leaf{Kind: Regex, Text: *f.Pattern}, nil
		}
		return nil, fmt.Errorf("regex: no pattern")
	case "token":
		return token(f.Token)
	case "sequence":
		all, err := p.all(f.Elements)
		return Sequence(all), err
	case "or":
		all, err := p.all(f.Elements)
		return OneOf(all), err
	case "optional", "plus", "star", "repeat":
		return p.repeated(f)
	case "tag":
		return p.tag(f)
	case "triggered_tags", "token_triggered_tags":
		return p.triggered(f)
	case "tags_with_separator":
		tags, err := p.tags(f.Tags)
		return Separated{tags, f.Separator, f.AtLeastOne, f.StopAfterFirst}, err
	case "dispatch":
		return p.dispatch(f)
	}
	return nil, fmt.Errorf("the type %q is not supported", f.Type)
}

func (p *formatParser) all(fs []formatJSON) ([]Format, error) {
	out := make([]Format, len(fs))
	var err error
	for i := range fs {
		if out[i], err = p.parse(&fs[i]); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		err = fmt.Errorf("no elements")
	}
	return out, err
}

func (p *formatParser) jsonSchema(f *formatJSON) (Format, error) {
	switch {
	case f.Style != "" && f.Style != "json":
		return nil, fmt.Errorf("json_schema: the style %q is not supported", f.Style)
	case f.AnyOrder:
		return nil, fmt.Errorf("json_schema: any_order is not supported")
	case len(f.Excludes) > 0:
		return nil, fmt.Errorf("json_schema: excludes is not supported")
	}
	o := p.schema
	if f.MaxSpace != nil {
		o.FlexibleSpace, o.MaxSpace = *f.MaxSpace > 0, *f.MaxSpace
	}
	return p.json(f.JSONSchema, o), nil
}

func (p *formatParser) anyText(f *formatJSON) (Format, error) {
	t := FreeText{Excludes: f.Excludes}
	if f.MaxChars != nil {
		if *f.MaxChars <= 0 {
			return Literal(""), nil
		}
		t.MaxChars = *f.MaxChars
	}
	return t, nil
}

func (p *formatParser) grammar(f *formatJSON) (Format, error) {
	switch {
	case f.Grammar == nil:
		return nil, fmt.Errorf("grammar: no grammar")
	case f.Syntax == "" || f.Syntax == "ebnf":
		return Leaf{Kind: GBNF, Text: *f.Grammar}, nil
	case f.Syntax == "lark":
		return Leaf{Kind: Lark, Text: *f.Grammar}, nil
	}
	return nil, fmt.Errorf("grammar: the syntax %q is not supported", f.Syntax)
}

func (p *formatParser) repeated(f *formatJSON) (Format, error) {
	if f.Content == nil {
		return nil, fmt.Errorf("%s: no content", f.Type)
	}
	part, err := p.parse(f.Content)
	r := Repeated{Part: part, Max: -1}
	switch f.Type {
	case "optional":
		r.Max = 1
	case "plus":
		r.Min = 1
	case "repeat":
		if f.Max == nil {
			return nil, fmt.Errorf("repeat: no max")
		}
		r.Min, r.Max = f.Min, *f.Max
	}
	return r, err
}

// tagEdge is the beginning or an end of a tag: a text, or {"type": "token", "token": id or text}.
func tagEdge(text json.RawMessage) (Format, error) {
	var t formatJSON
	if len(text) == 0 || text[0] != '{' {
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("the begin or end of a tag is a text or a token")
		}
		return Literal(s), nil
	}
	if err := strict(text, &t); err != nil {
		return nil, err
	}
	if t.Type != "token" {
		return nil, fmt.Errorf("the begin or end of a tag cannot be a %q", t.Type)
	}
	return token(t.Token)
}

// token is a token by id or text.
func token(text json.RawMessage) (Format, error) {
	var s string
	if json.Unmarshal(text, &s) == nil {
		return TokenText(s), nil
	}
	var id int32
	if json.Unmarshal(text, &id) == nil {
		return TokenID(id), nil
	}
	return nil, fmt.Errorf("a token is its id or its text")
}

func (p *formatParser) tag(f *formatJSON) (Format, error) {
	if f.Content == nil {
		return nil, fmt.Errorf("tag: no content")
	}
	begin, err := tagEdge(f.Begin)
	if err != nil {
		return nil, err
	}
	t := Tag{Begin: begin}
	if t.Content, err = p.parse(f.Content); err != nil {
		return nil, err
	}
	ends := []json.RawMessage{f.End}
	if len(f.End) > 0 && f.End[0] == '[' {
		if err := json.Unmarshal(f.End, &ends); err != nil {
			return nil, err
		}
	}
	for _, e := range ends {
		end, err := tagEdge(e)
		if err != nil {
			return nil, err
		}
		t.Ends = append(t.Ends, end)
	}
	return t, nil
}

func (p *formatParser) tags(fs []formatJSON) ([]Tag, error) {
	var out []Tag
	for i := range fs {
		if fs[i].Type != "tag" && fs[i].Type != "" {
			return nil, fmt.Errorf("tags are of the type tag, not %q", fs[i].Type)
		}
		t, err := p.tag(&fs[i])
		if err != nil {
			return nil, err
		}
		out = append(out, t.(Tag))
	}
	return out, nil
}

func (p *formatParser) triggered(f *formatJSON) (Format, error) {
	tags, err := p.tags(f.Tags)
	if err != nil {
		return nil, err
	}
	t := Triggered{f.Triggers, tags, f.AtLeastOne, f.StopAfterFirst, f.Excludes}
	for _, tag := range tags {
		if _, text := tag.Begin.(Literal); text != (f.Type == "triggered_tags") {
			return nil, fmt.Errorf("%s: the tags begin with texts in triggered_tags, with tokens in token_triggered_tags", f.Type)
		}
	}
	if len(f.Triggers) == 0 && f.Type == "triggered_tags" {
		return nil, fmt.Errorf("triggered_tags: no triggers")
	}
	return t, nil
}

func (p *formatParser) dispatch(f *formatJSON) (Format, error) {
	d := Dispatch{Loop: f.Loop == nil || *f.Loop, Excludes: f.Excludes}
	for i := range f.Rules {
		then, err := p.parse(&f.Rules[i].then)
		if err != nil {
			return nil, err
		}
		d.Rules = append(d.Rules, DispatchRule{f.Rules[i].pattern, then})
	}
	if len(d.Rules) == 0 {
		return nil, fmt.Errorf("dispatch: no rules")
	}
	return d, nil
}
