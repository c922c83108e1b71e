package dialect

import "strings"

// A Message is an answer as a whole, put together from its events.
type Message struct {
	content, reasoning strings.Builder
	calls              []Call
}

// A Call is a complete call of a tool.
type Call struct {
	ID        string // that the model gave, often ""
	Name      string
	Arguments string // a JSON object
}

// Add takes the next event of the answer.
func (m *Message) Add(e Event) {
	switch e.Kind {
	case Content:
		m.content.WriteString(e.Text)
	case Reasoning:
		m.reasoning.WriteString(e.Text)
	case CallBegin:
		m.calls = append(m.calls, Call{ID: e.ID, Name: e.Name})
	case CallArguments:
		m.calls[e.Call].Arguments += e.Text
	}
}

// Content is the text of the answer without reasoning and calls.
func (m *Message) Content() string { return m.content.String() }

// Reasoning is the text of the reasoning.
func (m *Message) Reasoning() string { return m.reasoning.String() }

// Calls are the calls, in order.
func (m *Message) Calls() []Call { return m.calls }
