// Package dialect reads what models write: which part of an answer is reasoning, which is a call of a tool, and
// which is content. A dialect is the form in which a family of models writes these; docs/dialects.md lists them.
//
// A Parser takes text as it comes and gives events. What comes out depends on the text alone, not on how it was
// cut: a marker that may be beginning is held back until it is decided, and a call is held back until it is
// complete, for what is not a well-formed call is content as it stands, markers included; Assured calls are not. Nothing
// is evaluated.
package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/chat"
)

// A Tool is one that the model was offered.
type Tool struct {
	Name string
	// Parameters is the JSON schema of the arguments. Dialects that write values without types take the types
	// from it; nil, or what is no schema, says nothing.
	Parameters *chat.Object
}

// Options choose how an answer is read.
type Options struct {
	// Tool names the dialect of calls, one of ToolNames or what others call it; "" and None: there are no calls.
	Tool string
	// Reasoning names the dialect of reasoning, one of ReasoningNames; "": the one that the tool dialect needs,
	// else none. None is none, except where reasoning and calls are messages of one form.
	Reasoning string
	Tools     []Tool
	// PromptOpen: the prompt has opened the reasoning.
	PromptOpen bool
	Assured    Assured
}

// None names no dialect.
const None = "none"

// Kind says what an Event is.
type Kind uint8

// The kinds of events. A call is CallBegin with Name and ID, CallArguments, whose texts together are a JSON
// object, and CallEnd; calls do not overlap. Only an Assured call may lack its end.
const (
	Content Kind = iota
	Reasoning
	CallBegin
	CallArguments
	CallEnd
)

// An Event is a piece of an answer.
type Event struct {
	Kind Kind
	Text string // of Content, Reasoning, CallArguments
	Call int    // of calls: 0, 1, … in the order of the answer
	Name string // of CallBegin: the tool
	ID   string // of CallBegin: the id that the model gave, often ""
}

// A tool is a dialect of calls.
type tool struct {
	name    string
	markers []string               // texts that may begin a call wherever they stand in the content
	take    func(p *Parser, i int) // reads what follows marker i
	start   func(p *Parser) bool   // reads a call that begins the answer without a marker
	needs   string                 // the dialect of reasoning that belongs to it
}

// New makes a parser. Its Close must be called, also when the rest of the answer does not matter.
func New(o Options) (*Parser, error) {
	t, ok := lookup(tools(), toolAlias(o.Tool), toolName)
	if !ok && o.Tool != "" && o.Tool != None {
		return nil, unknown("tool-call", o.Tool, ToolNames())
	}
	r, ok := lookup(reasonings(), reasoningAlias(o.Reasoning), reasoningName)
	if !ok && o.Reasoning != "" && o.Reasoning != None {
		return nil, unknown("reasoning", o.Reasoning, ReasoningNames())
	}
	if !ok && t != nil {
		needed, _ := lookup(reasonings(), t.needs, reasoningName)
		if needed != nil && (o.Reasoning != None || needed.channels != nil) {
			r = needed
		}
	}
	if r != nil && t != nil && r.channels != nil && t.needs != r.name {
		return nil, fmt.Errorf("the reasoning dialect %s reads calls, too: the tool-call dialect must be %s or none, not %s", r.name, r.name, t.name)
	}
	if t == nil {
		t = &tool{}
	}
	if r == nil {
		r = &reasoning{}
	}
	p := &Parser{tool: t, reasoning: r, promptOpen: o.PromptOpen, tools: map[string]*Tool{}, assured: o.Assured, sure: o.Assured.All}
	for i := range o.Tools {
		p.tools[o.Tools[i].Name] = &o.Tools[i]
	}
	p.begin()
	return p, nil
}

func toolName(t *tool) string           { return t.name }
func reasoningName(r *reasoning) string { return r.name }

func unknown(kind, name string, known []string) error {
	return fmt.Errorf("%.100q is no %s dialect; there are %s", name, kind, strings.Join(known, ", "))
}

// lookup finds a name in a table sorted by it.
func lookup[T any](table []T, name string, key func(*T) string) (*T, bool) {
	i, ok := slices.BinarySearchFunc(table, name, func(t T, name string) int { return strings.Compare(key(&t), name) })
	if !ok {
		return nil, false
	}
	return &table[i], true
}

// ToolNames are the dialects of calls, sorted.
func ToolNames() []string {
	var names []string
	for _, t := range tools() {
		names = append(names, t.name)
	}
	return names
}

// ReasoningNames are the dialects of reasoning, sorted.
func ReasoningNames() []string {
	var names []string
	for _, r := range reasonings() {
		names = append(names, r.name)
	}
	return names
}
