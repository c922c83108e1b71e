package spillway

import (
	"cmp"

	"github.com/spillway/spillway/internal/chat/dialect"
)

// An Event is a piece of an answer as its reader understands it.
type Event = dialect.Event

// Kinds of events. A call is CallBegin with a name, CallArguments, whose texts together are a JSON object, and
// CallEnd. A call that the Constraint makes sure of comes as it is generated; if the end of the answer cuts it off, it has
// no CallEnd, and its arguments are the beginning of an object.
const (
	EventContent       = dialect.Content
	EventReasoning     = dialect.Reasoning
	EventCallBegin     = dialect.CallBegin
	EventCallArguments = dialect.CallArguments
	EventCallEnd       = dialect.CallEnd
)

// Dialects say in which form a model calls tools and writes its reasoning; docs/dialects.md lists them. An
// empty name is the model's own, as its template and its name tell; NoDialect is none.
type Dialects struct{ Tool, Reasoning string }

// NoDialect reads an answer as plain text.
const NoDialect = dialect.None

// Dialects returns the model's own dialects; empty names: none.
func (c *Checkpoint) Dialects() Dialects {
	t, err := c.templates.For(true)
	if err != nil {
		return Dialects{}
	}
	tool, reasoning := dialect.Detect(t.Source(), c.Name())
	return Dialects{tool, reasoning}
}

// Or names a dialect where d names none.
func (d Dialects) Or(name string) Dialects {
	return Dialects{cmp.Or(d.Tool, name), cmp.Or(d.Reasoning, name)}
}

// resolve puts the model's own dialects where none is named.
func (d Dialects) resolve(own func() Dialects) Dialects {
	if d.Tool == "" || d.Reasoning == "" {
		o := own()
		d = Dialects{cmp.Or(d.Tool, o.Tool), cmp.Or(d.Reasoning, o.Reasoning)}
	}
	return d
}

// Check reports names that do not exist, or that do not go together.
func (d Dialects) Check() error {
	p, err := dialect.New(dialect.Options{Tool: d.Tool, Reasoning: d.Reasoning})
	if err == nil {
		p.Close()
	}
	return err
}

// A reply reads an answer: what of it is content, reasoning, a call.
type reply struct {
	parser  *dialect.Parser // nil: all is content
	emit    func(Event)     // nil: nobody listens
	message dialect.Message
}

// reader returns what reads the answer to a prompt.
func (m *Model) reader(r Request, prompt []int32) (*reply, error) {
	rep := &reply{emit: r.Events}
	d := r.Dialects.resolve(m.Dialects)
	if m.tok == nil || d.Or(NoDialect) == (Dialects{NoDialect, NoDialect}) {
		return rep, nil
	}
	o := dialect.Options{Tool: d.Tool, Reasoning: d.Reasoning}
	var list []any
	var err error
	if err = setJSON("tools", "a list", r.Tools, &list); err != nil {
		return nil, err
	}
	if o.Tools, err = dialect.ReadTools(list); err != nil {
		return nil, err
	}
	if o.PromptOpen, err = m.opens(d.Reasoning, prompt); err != nil {
		return nil, err
	}
	o.Assured = assured(r, d)
	rep.parser, err = dialect.New(o)
	return rep, err
}

// assured says which calls of an answer that is read in the dialects its constraint makes sure of. Texts and tokens that
// end an answer do so in the midst of a call, too, which then is text.
func assured(r Request, d Dialects) dialect.Assured {
	if l, ok := r.Constraint.(heldTo); ok && l.read == d && len(r.Stop)+len(r.StopIDs) == 0 {
		return l.assured
	}
	return dialect.Assured{}
}

// openTail is how many tokens at a prompt's end can hold the mark that opens the reasoning.
const openTail = 64

// opens reports whether a prompt has opened the reasoning.
func (m *Model) opens(reasoning string, prompt []int32) (bool, error) {
	tail, err := m.tok.Decode(prompt[max(len(prompt)-openTail, 0):], false)
	return err == nil && dialect.PromptOpens(reasoning, string(tail)), err
}

func (p *reply) write(text string) {
	if p.parser == nil {
		p.take([]Event{{Kind: EventContent, Text: text}})
		return
	}
	p.take(p.parser.Write(text))
}

// end completes the answer.
func (p *reply) end(a *Answer) {
	if p.parser != nil {
		p.take(p.parser.Close())
	}
	a.Content, a.Reasoning = p.message.Content(), p.message.Reasoning()
	for _, c := range p.message.Calls() {
		a.ToolCalls = append(a.ToolCalls, ToolCall(c))
	}
}

func (p *reply) take(events []Event) {
	for _, e := range events {
		p.message.Add(e)
		if p.emit != nil {
			p.emit(e)
		}
	}
}
