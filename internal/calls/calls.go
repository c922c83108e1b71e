// Package calls says what an answer with calls of tools may be, as a grammar: in the form that the model's dialect
// has, and with arguments that fit each tool's schema. What it writes the parsers of package dialect read.
package calls

import (
	"encoding/json"
	"fmt"

	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar"
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
	Then            grammar.Format                        `json:"-"` // with Auto, what an answer without calls must be; nil: text
}

// Fallback is the dialect of calls for models that have none.
const Fallback = "hermes"

// Dialect is the dialect that Format writes for a model of the dialect name, unless its reasoning has channels: read
// the answer with it. A name that stands for another dialect stays as it is.
func Dialect(name string) string {
	if formOf(name) != nil {
		return name
	}
	return Fallback
}

// Dialect is the dialect that Format writes: read the answer with it.
func (o Options) Dialect() string {
	if m := dialect.ReasoningMarks(o.Tool, o.Reasoning); m.Channels && formOf(o.Tool) == nil {
		return m.Name
	}
	return Dialect(o.Tool)
}

// Assured says which calls in an answer of the Format are sure to be well-formed.
func (o Options) Assured() dialect.Assured {
	name := dialect.ToolName(o.Dialect())
	switch {
	case dialect.ReasoningMarks(o.Tool, o.Reasoning).Kept, o.Mode == Auto && o.Then != nil:
		return dialect.Assured{} // free text, or content of another form, may look like a call
	case o.Mode != Auto || channelsOf(name) != nil:
		return dialect.Assured{All: true}
	}
	var out dialect.Assured
	for f := formOf(name); f != nil; f = f.also {
		if f.trigger != "" {
			out.Marks = append(out.Marks, o.named(f.trigger)...)
		}
		if f.start != "" {
			out.Starts = append(out.Starts, o.named(f.start)...)
		}
	}
	return out
}

// Key tells Options apart, but for Token and Then, for grammar.Source.Key.
func Key(o Options) string {
	b, err := json.Marshal(o)
	if err != nil {
		return "" // then nothing is kept
	}
	return string(b)
}

// Format is what the answer may be. When it is compiled, errors about a tool are *ToolError.
func Format(o Options) (grammar.Format, error) {
	if err := o.choose(); err != nil {
		return nil, err
	}
	name := dialect.ToolName(o.Dialect())
	f := formOf(name)
	all := written(&o, name, f, o.Parallel && !f.single)
	if c := channelsOf(name); c != nil {
		return c.answer(&o, all), nil
	}
	switch {
	case o.Mode != Auto:
		return reasoned(&o, all, false), nil
	case o.Then != nil:
		return reasoned(&o, grammar.OneOf{wrapped(&o, o.Then), all}, false), nil
	}
	return reasoned(&o, auto(&o, name), true), nil
}

// choose leaves the tools that may be called.
func (o *Options) choose() error {
	if o.Mode == Named {
		var one []Tool
		for _, t := range o.Tools {
			if t.Name == o.Name {
				one = append(one, t)
			}
		}
		o.Tools = one
	}
	switch {
	case len(o.Tools) > 0:
		return nil
	case o.Mode == Named:
		return fmt.Errorf("there is no tool %.100q to call", o.Name)
	}
	return fmt.Errorf("there are no tools to call")
}

// A ToolError says why no call of a tool can be held to its schema in a dialect.
type ToolError struct {
	Tool, Dialect string
	Err           error // a *schema.Error where the schema is the cause: it has the keyword and the place
}

func (e *ToolError) Error() string {
	return fmt.Sprintf("the tool %.100q in the dialect %s: %v", e.Tool, e.Dialect, e.Err)
}

func (e *ToolError) Unwrap() error { return e.Err }
