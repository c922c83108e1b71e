package anthropic

import (
	"encoding/json"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
)

// Blocks of a message.
type (
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingBlock struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	toolBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
)

// signature stands where Anthropic signs what was thought; it says nothing, and is not looked at when it comes back.
const signature = "c3BpbGx3YXk="

// input is the arguments of a call as an object.
func input(arguments string) json.RawMessage {
	if !json.Valid([]byte(arguments)) || arguments == "" || arguments[0] != '{' {
		return json.RawMessage("{}")
	}
	return json.RawMessage(arguments)
}

// Events of a stream.
type (
	startEvent struct {
		Type    string  `json:"type"`
		Message message `json:"message"`
	}
	blockStart struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block any    `json:"content_block"`
	}
	blockDelta struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Delta any    `json:"delta"`
	}
	blockStop struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	endEvent struct {
		Type  string `json:"type"`
		Delta struct {
			Reason   *string `json:"stop_reason"`
			Sequence *string `json:"stop_sequence"`
		} `json:"delta"`
		Usage usage `json:"usage"`
	}
	plainEvent struct {
		Type string `json:"type"`
	}
	textDelta struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingDelta struct {
		Type     string `json:"type"`
		Thinking string `json:"thinking"`
	}
	signatureDelta struct {
		Type      string `json:"type"`
		Signature string `json:"signature"`
	}
	inputDelta struct {
		Type string `json:"type"`
		JSON string `json:"partial_json"`
	}
)

// A writer makes Anthropic's events of ours: one block is open at a time.
type writer struct {
	*job
	put    func(name string, v any)
	begun  bool
	isOpen bool
	open   spillway.Event // what the open block is of
	index  int
}

// stream answers by events. What is sent starts with the answer's first token, so that a request which is refused
// gets an ordinary answer.
func (j *job) stream() error {
	events := j.x.Events()
	w := &writer{job: j, put: func(name string, v any) { _ = events.Event(name, v) }} // a client that left cancels the exchange
	events.SetPing(func() (string, any) { return "ping", plainEvent{"ping"} })
	j.r.OnToken = func(spillway.Token) { w.begin() }
	j.r.Events = w.event
	a, err := j.x.Generate(j.h, j.r)
	switch {
	case err != nil && !events.Started():
		return err
	case err != nil:
		return events.Event("error", errorObject(server.ErrorOf(err)))
	}
	w.begin()
	w.close()
	end := endEvent{Type: "message_delta", Usage: j.usage(len(a.PromptIDs), a.CachedTokens, len(a.IDs))}
	end.Delta.Reason, end.Delta.Sequence = j.ending(a)
	w.put(end.Type, end)
	w.put("message_stop", plainEvent{"message_stop"})
	return nil
}

func (w *writer) begin() {
	if w.begun {
		return
	}
	w.begun = true
	m := w.message(server.NewID("msg_"))
	m.Usage = w.usage(len(w.r.IDs), 0, 0)
	w.put("message_start", startEvent{"message_start", m})
}

func (w *writer) event(e spillway.Event) {
	w.begin()
	switch e.Kind {
	case spillway.EventContent:
		w.into(e, textBlock{Type: "text"})
		w.delta(textDelta{"text_delta", e.Text})
	case spillway.EventReasoning:
		if w.silent() {
			return
		}
		w.into(e, thinkingBlock{Type: "thinking"})
		w.delta(thinkingDelta{"thinking_delta", e.Text})
	case spillway.EventCallBegin:
		w.close()
		w.into(e, toolBlock{"tool_use", server.NewID("toolu_"), e.Name, json.RawMessage("{}")})
	case spillway.EventCallArguments:
		w.delta(inputDelta{"input_json_delta", e.Text})
	case spillway.EventCallEnd:
		w.close()
	}
}

// into opens a block, unless one of the kind is open.
func (w *writer) into(e spillway.Event, block any) {
	if w.isOpen && w.open.Kind == e.Kind {
		return
	}
	w.close()
	w.isOpen, w.open = true, e
	w.put("content_block_start", blockStart{"content_block_start", w.index, block})
}

func (w *writer) delta(d any) {
	w.put("content_block_delta", blockDelta{"content_block_delta", w.index, d})
}

// close ends the open block.
func (w *writer) close() {
	if !w.isOpen {
		return
	}
	if w.open.Kind == spillway.EventReasoning {
		w.delta(signatureDelta{"signature_delta", signature})
	}
	w.put("content_block_stop", blockStop{"content_block_stop", w.index})
	w.isOpen = false
	w.index++
}
