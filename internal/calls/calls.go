// Package calls says what an answer with calls of tools may be, as a grammar: in the form that the model's dialect
// has, and with arguments that fit each tool's schema.
package calls

import (
	"encoding/json"
	"fmt"

	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// A Tool may be called.
type Tool struct {
	Name   string
	Schema []byte // JSON Schema of the arguments; empty: any object
}

// Mode says whether calls are wanted.
type Mode uint8

const (
	Auto     Mode = iota // text, and calls where the model begins one
	Required             // calls and nothing else
	Named                // calls of one tool
)

// Options say what is asked of an answer.
type Options struct {
	Tool, Reasoning string // dialects, as dialect.Options have them
	Tools           []Tool
	Mode            Mode
	Name            string                                // with Named
	Parallel        bool                                  // there may be several calls
	PromptOpen      bool                                  // the prompt has opened the reasoning
	Token           func(text string) (id int32, ok bool) `json:"-"` // tokens of the vocabulary by their text; nil: none
}

// Fallback is the dialect of calls for models that have none, or one that Dialect does not write.
const Fallback = "hermes"

// Dialect is the dialect that Format writes for a model of the dialect name: read the answer with it.
func Dialect(name string) string {
	if _, ok := forms[name]; ok {
		return name
	}
	return Fallback
}

// Key tells Options apart, for grammar.Source.Key.
func Key(o Options) string {
	b, err := json.Marshal(o)
	if err != nil {
		return "" // then nothing is kept
	}
	return string(b)
}

// Format is what the answer may be; nil: anything, since the dialect shows no mark where a call begins. An error
// about a tool's arguments is a *schema.Error.
func Format(o Options) (grammar.Format, error) {
	f := forms[Dialect(o.Tool)]
	tools := o.Tools
	if o.Mode == Named {
		tools = nil
		for _, t := range o.Tools {
			if t.Name == o.Name {
				tools = append(tools, t)
			}
		}
	}
	if len(tools) == 0 {
		return nil, fmt.Errorf("there is no tool %q to call", o.Name)
	}
	if o.Mode == Auto {
		return f.auto(o, tools), nil
	}
	return Reasoned(o, f.required(o, tools))
}

// Reasoned is content, which reasoning may stand before, as the dialect of reasoning has it. After a prompt that opened
// the reasoning it must end first.
func Reasoned(o Options, content grammar.Format) (grammar.Format, error) {
	open, end := dialect.ReasoningMarks(o.Reasoning)
	if len(end) == 0 || len(open) == 0 && !o.PromptOpen {
		return content, nil
	}
	ends := make([]grammar.Format, len(end))
	for i, text := range end {
		ends[i] = o.mark(text)
	}
	thought := func(begin grammar.Format) grammar.Format {
		return grammar.Sequence{grammar.Tag{Begin: begin, Content: grammar.FreeText{}, Ends: ends}, lines, content}
	}
	if o.PromptOpen {
		return thought(grammar.Literal("")), nil
	}
	all := grammar.OneOf{content}
	for _, text := range open {
		all = append(all, thought(o.mark(text)))
	}
	return all, nil
}

// lines are up to two line breaks.
var lines = grammar.Custom(func(b *cfg.Builder) (cfg.Expr, error) { return b.Repeat(b.Bytes("\n"), 0, 2), nil })

// mark is a text that is one token where the vocabulary has it.
func (o Options) mark(text string) grammar.Format {
	if o.Token != nil {
		if id, ok := o.Token(text); ok {
			return grammar.TokenID(id)
		}
	}
	return grammar.Literal(text)
}

// arguments are an object that fits the tool's schema.
func (t Tool) arguments() grammar.Format {
	if len(t.Schema) == 0 {
		return grammar.Leaf{Kind: grammar.JSONObject}
	}
	return grammar.Custom(func(b *cfg.Builder) (cfg.Expr, error) { return schema.Compile(b, objectOf(t.Schema), schema.Options{}) })
}

// objectOf makes sure that a schema allows objects alone, as all arguments are.
func objectOf(text []byte) []byte {
	out := append([]byte(`{"type":"object","allOf":[`), text...)
	return append(out, "]}"...)
}
