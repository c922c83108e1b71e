package openai

import (
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
)

// item is a part of a response's output: a message, a call, or reasoning.
type item struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	Status    string  `json:"status,omitempty"`
	Role      string  `json:"role,omitempty"`
	Summary   *[]part `json:"summary,omitempty"`
	Content   *[]part `json:"content,omitempty"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
}

// part is a part of an item's content.
type part struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Annotations *[]struct{}     `json:"annotations,omitempty"`
	LogProbs    *[]tokenLogProb `json:"logprobs,omitempty"`
}

func textPart(text string, probs []tokenLogProb) part {
	return part{Type: "output_text", Text: text, Annotations: &[]struct{}{}, LogProbs: &probs}
}

// responseEvent is an event of a streamed response.
type responseEvent struct {
	Type         string          `json:"type"`
	Sequence     int             `json:"sequence_number"`
	Response     *response       `json:"response,omitempty"`
	OutputIndex  *int            `json:"output_index,omitempty"`
	Item         *item           `json:"item,omitempty"`
	ItemID       string          `json:"item_id,omitempty"`
	ContentIndex *int            `json:"content_index,omitempty"`
	Part         *part           `json:"part,omitempty"`
	Delta        *string         `json:"delta,omitempty"`
	Text         *string         `json:"text,omitempty"`
	Name         string          `json:"name,omitempty"`
	Arguments    *string         `json:"arguments,omitempty"`
	LogProbs     *[]tokenLogProb `json:"logprobs,omitempty"`
}

// A reply puts a response together as its answer comes, and emits its events in their order. Its calls come
// from one goroutine.
type reply struct {
	j      *responseJob
	emit   func(*responseEvent) // nil: nobody listens
	object *response
	next   int // sequence number
	begun  bool
	open   bool           // the last item is not complete
	text   []byte         // of the last item
	probs  []tokenLogProb // of the last item
	tokens []spillway.Token
}

func newReply(j *responseJob) *reply { return &reply{j: j, object: j.object()} }

func (p *reply) send(e responseEvent) {
	if p.emit == nil {
		return
	}
	e.Sequence = p.next
	p.next++
	p.emit(&e)
}

// begin sends the events that come before everything else.
func (p *reply) begin() {
	if p.begun {
		return
	}
	p.begun = true
	p.send(responseEvent{Type: "response.created", Response: p.object})
	p.send(responseEvent{Type: "response.in_progress", Response: p.object})
}

func (p *reply) token(t spillway.Token) {
	if p.j.probs {
		p.tokens = append(p.tokens, t)
	}
}

func (p *reply) event(e spillway.Event) {
	if p.j.tools.one && e.Kind >= spillway.EventCallBegin && e.Call > 0 {
		return
	}
	switch e.Kind {
	case spillway.EventContent:
		p.kind("message", e)
		p.delta("response.output_text.delta", e.Text)
	case spillway.EventReasoning:
		p.kind("reasoning", e)
		p.delta("response.reasoning_text.delta", e.Text)
	case spillway.EventCallBegin:
		p.end("completed")
		p.kind("function_call", e)
	case spillway.EventCallArguments:
		p.delta("response.function_call_arguments.delta", e.Text)
	case spillway.EventCallEnd:
		p.end("completed")
	}
}

// last is the item that is being written, and its place.
func (p *reply) last() (*item, int) {
	i := len(p.object.Output) - 1
	return &p.object.Output[i], i
}

// kind begins an item of a kind, unless the last one is of it and open.
func (p *reply) kind(kind string, e spillway.Event) {
	p.begin()
	if p.open {
		if it, _ := p.last(); it.Type == kind && kind != "function_call" {
			return
		}
		p.end("completed")
	}
	it := item{Type: kind, Status: "in_progress"}
	switch kind {
	case "message":
		it.ID, it.Role, it.Content = server.NewID("msg_"), "assistant", &[]part{}
	case "reasoning":
		it.ID, it.Summary, it.Content = server.NewID("rs_"), &[]part{}, &[]part{}
	default:
		it.ID, it.CallID, it.Name, it.Arguments = server.NewID("fc_"), callID(e.ID), e.Name, new(string)
	}
	p.object.Output = append(p.object.Output, it)
	p.open, p.text, p.probs = true, p.text[:0], []tokenLogProb{}
	_, i := p.last()
	p.send(responseEvent{Type: "response.output_item.added", OutputIndex: &i, Item: &it})
	if kind == "message" {
		empty := textPart("", []tokenLogProb{})
		p.send(responseEvent{Type: "response.content_part.added", OutputIndex: &i, ItemID: it.ID, ContentIndex: new(int), Part: &empty})
	}
}

// delta adds text to the item that is open.
func (p *reply) delta(name, text string) {
	it, i := p.last()
	p.text = append(p.text, text...)
	e := responseEvent{Type: name, OutputIndex: &i, ItemID: it.ID, Delta: &text}
	if it.Type != "function_call" {
		e.ContentIndex = new(int)
	}
	if it.Type == "message" {
		probs := p.j.h.logProbsOf(p.tokens, p.j.r.TopLogProbs)
		p.probs, e.LogProbs = append(p.probs, probs...), &probs
	}
	p.tokens = p.tokens[:0]
	p.send(e)
}

// end completes the item that is open.
func (p *reply) end(status string) {
	if !p.open {
		return
	}
	p.open = false
	it, i := p.last()
	it.Status = status
	text := string(p.text)
	switch it.Type {
	case "message":
		whole := textPart(text, p.probs)
		it.Content = &[]part{whole}
		p.send(responseEvent{Type: "response.output_text.done", OutputIndex: &i, ItemID: it.ID, ContentIndex: new(int), Text: &text, LogProbs: &p.probs})
		p.send(responseEvent{Type: "response.content_part.done", OutputIndex: &i, ItemID: it.ID, ContentIndex: new(int), Part: &whole})
	case "reasoning":
		it.Content = &[]part{{Type: "reasoning_text", Text: text}}
		p.send(responseEvent{Type: "response.reasoning_text.done", OutputIndex: &i, ItemID: it.ID, ContentIndex: new(int), Text: &text})
	default:
		it.Arguments = &text
		p.send(responseEvent{Type: "response.function_call_arguments.done", OutputIndex: &i, ItemID: it.ID, Name: it.Name, Arguments: &text})
	}
	done := *it
	p.send(responseEvent{Type: "response.output_item.done", OutputIndex: &i, Item: &done})
}

// finish completes the response.
func (p *reply) finish(a *spillway.Answer, u usage) *response {
	status := "completed"
	if a.FinishReason == spillway.FinishLength {
		status = "incomplete"
		p.object.Incomplete = &incomplete{"max_output_tokens"}
	}
	if p.end(status); len(p.object.Output) == 0 || p.lacksMessage() {
		p.kind("message", spillway.Event{})
		p.end(status)
	}
	now := time.Now().Unix()
	p.object.Status, p.object.Usage = status, u.response()
	if status == "completed" {
		p.object.Completed = &now
	}
	p.send(responseEvent{Type: "response." + status, Response: p.object})
	return p.object
}

// lacksMessage reports whether the answer has neither content nor a call.
func (p *reply) lacksMessage() bool {
	for _, it := range p.object.Output {
		if it.Type != "reasoning" {
			return false
		}
	}
	return true
}

// failed ends a stream with an error.
func (p *reply) failed(err *server.Error) {
	p.object.Status, p.object.Error = "failed", &responseError{"server_error", err.Message}
	p.send(responseEvent{Type: "response.failed", Response: p.object})
}
