package dialect

import "github.com/spillway/spillway/internal/chat"

// ToolName is the dialect of calls that a name means, which may be an alias; "" where there is none of the name.
func ToolName(name string) string {
	t, ok := lookup(tools(), toolAlias(name), toolName)
	if !ok {
		return ""
	}
	return t.name
}

// Marks are how an answer with reasoning is written.
type Marks struct {
	Name       string   // of the dialect; "": there is no reasoning
	Channels   bool     // reasoning, content and calls are messages of one form; then nothing else is set
	Open, End  []string // texts that may begin the reasoning, and that may end it
	Reopens    bool     // later, too
	Bare       bool     // an answer without reasoning may begin with an end
	Interrupts string   // ends the reasoning, too, and belongs to what follows
	Kept       bool     // all of it is content, and so is read for calls
	Wraps      []Wrap
}

// A Wrap is what may stand around the content of an answer.
type Wrap struct {
	Open, End string // Open may be ""
	Spaced    bool   // white space within is no content
}

// ReasoningMarks are the marks of the dialect of reasoning that New chooses for the two names.
func ReasoningMarks(tool, reasoning string) Marks {
	r, ok := lookup(reasonings(), reasoningAlias(reasoning), reasoningName)
	if t, known := lookup(tools(), toolAlias(tool), toolName); known && !ok {
		needed, found := lookup(reasonings(), t.needs, reasoningName)
		if found && (reasoning != None || needed.channels != nil) {
			r, ok = needed, true
		}
	}
	switch {
	case !ok:
		return Marks{}
	case r.channels != nil:
		return Marks{Name: r.name, Channels: true}
	}
	m := Marks{Name: r.name, Open: r.open, End: r.close, Reopens: r.anywhere, Bare: r.bare, Interrupts: r.interrupt}
	if r.keep != "" {
		m.Open, m.End, m.Kept = []string{r.keep}, []string{thinkClose}, true
	}
	if r.wrapClose != "" {
		m.Wraps = append(m.Wraps, Wrap{r.wrapOpen, r.wrapClose, true})
	}
	for i := 0; i+1 < len(r.drop); i += 2 {
		m.Wraps = append(m.Wraps, Wrap{r.drop[i], r.drop[i+1], false})
	}
	return m
}

// Typing says how a Parser takes the types of raw arguments from a tool's schema.
type Typing struct{ p Parser }

// NewTyping is the Typing of a tool with the parameters.
func NewTyping(parameters *chat.Object) *Typing {
	return &Typing{Parser{tools: map[string]*Tool{"": {Parameters: parameters}}}}
}

// Argument is the schema of an argument; nil: it says nothing.
func (t *Typing) Argument(key string) any { return t.p.schema("", key) }

// Child is the schema of an element of an argument, for dialects that nest them; in an array they are called item.
func (t *Typing) Child(schema any, key string) any {
	return t.p.resolve("", childSchema(t.p.resolve("", schema), key))
}

// List reports whether elements called item are an array.
func (t *Typing) List(schema any) bool { return property(t.p.resolve("", schema), "item") == nil }

// Types are the types that a raw text is read as: JSON of one of them where it is that, and else a string. Where there
// are none it is any JSON, or else a string.
func (t *Typing) Types(schema any) []string { return t.p.types("", schema) }
