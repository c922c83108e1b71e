package calls

import (
	"encoding/json"

	"github.com/spillway/spillway/internal/grammar"
)

// A form is how a dialect writes calls: each between marks, or all in an array between them.
type form struct {
	open, end string // marks; empty: none
	space     string // between a mark and what it encloses
	arguments string // the key of the arguments
	between   string // calls that follow each other
	array     bool
}

// forms are the dialects that write a call as a JSON object.
var forms = map[string]form{
	"granite":           {open: "<|tool_call|>", arguments: "arguments", between: ", ", array: true},
	"granite_20b_fc":    {open: "<function_call>", space: " ", arguments: "arguments", between: "\n"},
	"hermes":            {open: "<tool_call>", end: "</tool_call>", space: "\n", arguments: "arguments", between: "\n"},
	"hunyuan_a13b":      {open: "<tool_calls>", end: "</tool_calls>", arguments: "arguments", between: ", ", array: true},
	"llama3_json":       {arguments: "parameters", between: "; "},
	"llama3_python_tag": {open: "<|python_tag|>", arguments: "parameters", between: "; "},
	"longcat":           {open: "<longcat_tool_call>", end: "</longcat_tool_call>", space: "\n", arguments: "arguments", between: "\n"},
	"minimax_m1":        {open: "<tool_calls>", end: "</tool_calls>", space: "\n", arguments: "arguments", between: "\n", array: true},
	"mistral_json":      {open: "[TOOL_CALLS]", arguments: "arguments", between: ", ", array: true},
	"nemotron_v2":       {open: "<TOOLCALL>", end: "</TOOLCALL>", arguments: "arguments", between: ", ", array: true},
	"phi4_mini":         {open: "functools", arguments: "arguments", between: ", ", array: true},
	"xlam":              {arguments: "arguments", between: ", ", array: true},
}

// brackets are those around calls that stand together; where each has a line of its own there are none.
func (f form) brackets() (open, end string) {
	if !f.array || f.between == "\n" {
		return "", ""
	}
	return "[", "]"
}

// call is one call as JSON.
func (f form) call(tools []Tool) grammar.Format {
	var all grammar.OneOf
	for _, t := range tools {
		name, _ := json.Marshal(t.Name) // a string
		all = append(all, grammar.Sequence{grammar.Literal(`{"name": ` + string(name) + `, "` + f.arguments + `": `), t.arguments(), grammar.Literal("}")})
	}
	return all
}

// several are one or, if the options say so, more of a part.
func (f form) several(o Options, part grammar.Format) grammar.Format {
	if !o.Parallel {
		return part
	}
	more := grammar.Sequence{grammar.Literal(f.between), part}
	return grammar.Sequence{part, grammar.Repeated{Part: more, Min: 0, Max: -1}}
}

// enclosed is content between the marks.
func (f form) enclosed(o Options, content grammar.Format) grammar.Format {
	var all grammar.Sequence
	if f.open != "" {
		all = append(all, o.mark(f.open), grammar.Literal(f.space))
	}
	all = append(all, content)
	if f.end != "" {
		all = append(all, grammar.Literal(f.space), o.mark(f.end))
	}
	return all
}

// required is calls and nothing else.
func (f form) required(o Options, tools []Tool) grammar.Format {
	call := f.call(tools)
	switch {
	case f.array:
		open, end := f.brackets()
		return f.enclosed(o, grammar.Sequence{grammar.Literal(open), f.several(o, call), grammar.Literal(end)})
	case f.end == "" && f.open != "" && f.between == "; ": // the mark stands once
		return f.enclosed(o, f.several(o, call))
	}
	return f.several(o, f.enclosed(o, call))
}

// auto is text with calls behind their mark; nil where there is no mark on both sides.
func (f form) auto(o Options, tools []Tool) grammar.Format {
	if f.open == "" || f.end == "" {
		return nil
	}
	content := f.call(tools)
	if f.array {
		open, end := f.brackets()
		content = grammar.Sequence{grammar.Literal(open), f.several(o, content), grammar.Literal(end)}
	}
	tag := grammar.Tag{
		Begin:   o.mark(f.open),
		Content: grammar.Sequence{grammar.Literal(f.space), content, grammar.Literal(f.space)},
		Ends:    []grammar.Format{o.mark(f.end)},
	}
	t := grammar.Triggered{Tags: []grammar.Tag{tag}, StopAfterFirst: !o.Parallel}
	if text, ok := tag.Begin.(grammar.Literal); ok {
		t.Triggers = []string{string(text)}
	}
	return t
}
