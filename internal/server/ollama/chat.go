package ollama

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/wire"
)

// common are the fields of chat and generate.
type common struct {
	Model       string          `json:"model"`
	Stream      *bool           `json:"stream"`
	Options     options         `json:"options"`
	KeepAlive   keepAlive       `json:"keep_alive"`
	Think       thinking        `json:"think"`
	Format      wire.Value      `json:"format"`
	LogProbs    bool            `json:"logprobs"`
	TopLogProbs int             `json:"top_logprobs"`
	Template    string          `json:"template"`
	Images      []wire.Value    `json:"images"`
	Extra       json.RawMessage `json:"chat_template_kwargs"`
}

func (c *common) streams() bool { return c.Stream == nil || *c.Stream }

// request is what chat and generate ask in common.
func (c *common) request(h *pool.Held) (spillway.Request, error) {
	r, err := c.Options.request(h)
	switch {
	case err != nil:
	case c.Template != "":
		err = server.Invalid("template", "a template of the request's own is not supported; leave it out")
	case len(c.Images) > 0:
		err = server.Invalid("images", "the models here take text alone")
	case c.TopLogProbs < 0 || c.TopLogProbs > spillway.MaxTopLogProbs:
		err = wire.Errorf("top_logprobs", "is %d; it must be between 0 and %d", c.TopLogProbs, spillway.MaxTopLogProbs)
	default:
		_, err = c.form()
	}
	r.LogProbs, r.TopLogProbs = c.LogProbs || c.TopLogProbs > 0, c.TopLogProbs
	r.TemplateArgs = c.templateArgs()
	return r, err
}

// form is what format asks for.
func (c *common) form() (spillway.Form, error) {
	switch c.Format.Kind() {
	case wire.Null:
		return spillway.Form{}, nil
	case wire.Object:
		return spillway.Form{Kind: spillway.FormJSONSchema, Text: string(c.Format.Raw())}, nil
	case wire.String:
		text, err := c.Format.Text()
		switch {
		case err != nil:
			return spillway.Form{}, err
		case text == "":
			return spillway.Form{}, nil
		case text == "json":
			return spillway.Form{Kind: spillway.FormJSONObject}, nil
		}
		return spillway.Form{}, wire.Errorf("format", "is %.40q; there are json, and a JSON Schema", text)
	}
	return spillway.Form{}, wire.Within("format", c.Format.Expected("json or a JSON Schema"))
}

// constrain holds the answer to a prepared request to what format asks for.
func (c *common) constrain(x *server.Exchange, h *pool.Held, r *spillway.Request) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	limit, err := x.Constrain(h, r, spillway.Demand{Form: form}, "format")
	r.Constraint = limit.Constraint()
	return err
}

func (c *common) templateArgs() json.RawMessage {
	if !c.Think.given {
		return c.Extra
	}
	args := map[string]json.RawMessage{}
	if len(c.Extra) > 0 {
		if err := json.Unmarshal(c.Extra, &args); err != nil {
			return c.Extra // the template's reader says what is wrong
		}
	}
	args["enable_thinking"], _ = json.Marshal(c.Think.on)
	if c.Think.level != "" {
		args["reasoning_effort"], _ = json.Marshal(c.Think.level)
	}
	out, _ := json.Marshal(args)
	return out
}

type chatRequest struct {
	common
	Messages wire.Value `json:"messages"`
	Tools    wire.Value `json:"tools"`
}

// chatLine is a line of a stream, or a whole answer.
type chatLine struct {
	Model    string        `json:"model"`
	Created  string        `json:"created_at"`
	Message  chatMessage   `json:"message"`
	LogProbs []probability `json:"logprobs,omitempty"`
	Done     bool          `json:"done"`
	counts
}

type chatMessage struct {
	Role     string `json:"role"`
	Content  string `json:"content"`
	Thinking string `json:"thinking,omitempty"`
	Calls    []call `json:"tool_calls,omitempty"`
}

func chat(x *server.Exchange) error {
	var body chatRequest
	if err := x.Body(&body); err != nil {
		return err
	}
	list, err := messages(body.Messages)
	if err != nil {
		return err
	}
	h, loaded, err := open(x, body.Model, body.KeepAlive)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return x.JSON(http.StatusOK, chatLine{Model: body.Model, Created: now(), Message: chatMessage{Role: "assistant"}, Done: true, counts: counts{Reason: loadReason(body.KeepAlive)}})
	}
	r, err := body.request(h)
	if err != nil {
		return err
	}
	r.Messages = list
	if body.Tools.Kind() == wire.Array {
		r.Tools = body.Tools.Raw()
	} else {
		r.Dialects.Tool = spillway.NoDialect
	}
	if err := x.Prepare(h, &r, bytesOf(body.Messages.Raw(), r.Tools, r.TemplateArgs), 1); err != nil {
		return err
	}
	if err := body.constrain(x, h, &r); err != nil {
		return err
	}
	v := &chatVoice{voice: voice{x: x, model: body.Model}}
	return v.answer(h, r, body.streams(), loaded, v)
}

// loadReason is how a request ends that only loads a model, or makes it go.
func loadReason(k keepAlive) string {
	if k.given && k.time == 0 {
		return "unload"
	}
	return "load"
}

// chatVoice writes the answers of chat.
type chatVoice struct{ voice }

func (v *chatVoice) line(p piece) any {
	return chatLine{Model: v.model, Created: now(), LogProbs: p.probs, Done: p.done, counts: p.counts,
		Message: chatMessage{Role: "assistant", Content: p.content, Thinking: p.reasoning, Calls: p.calls}}
}

// A piece is what a line says.
type piece struct {
	content, reasoning string
	calls              []call
	probs              []probability
	done               bool
	context            []int32
	counts
}

// A liner writes pieces in its own form.
type liner interface{ line(p piece) any }

// voice runs an answer and writes it, as a stream or in one piece.
type voice struct {
	x     *server.Exchange
	model string
}

func (v *voice) answer(h *pool.Held, r spillway.Request, streams bool, loaded time.Duration, l liner) error {
	if !streams {
		a, err := v.x.Generate(h, r)
		if err != nil {
			return err
		}
		p := piece{content: a.Content, reasoning: a.Reasoning, done: true, counts: countsOf(v.x, a, loaded), context: contextOf(a)}
		for _, c := range a.ToolCalls {
			p.calls = append(p.calls, callOf(c)...)
		}
		for _, t := range a.Tokens {
			p.probs = append(p.probs, probabilityOf(t))
		}
		return v.x.JSON(http.StatusOK, l.line(p))
	}
	return v.stream(h, r, loaded, l)
}

// contextOf is the conversation as ids, for generate's next request.
func contextOf(a *spillway.Answer) []int32 {
	return append(append([]int32{}, a.PromptIDs...), a.IDs...)
}

func (v *voice) stream(h *pool.Held, r spillway.Request, loaded time.Duration, l liner) error {
	lines := v.x.Lines()
	var probs []probability
	if r.LogProbs {
		r.OnToken = func(t spillway.Token) { probs = append(probs, probabilityOf(t)) }
	}
	speech := speech{send: func(p piece) {
		p.probs, probs = probs, nil
		_ = lines.Line(l.line(p)) // a client that left cancels the exchange
	}}
	r.Events = speech.event
	a, err := v.x.Generate(h, r)
	switch {
	case err != nil && !lines.Started():
		return err
	case err != nil:
		return lines.Line(family.Error(server.ErrorOf(err)))
	}
	speech.endCall()
	speech.send(piece{done: true, counts: countsOf(v.x, a, loaded), context: contextOf(a)})
	return nil
}

// A speech makes pieces of events: a call is one, sent when it is whole.
type speech struct {
	send func(p piece)
	open *spillway.ToolCall
}

func (s *speech) event(e spillway.Event) {
	switch e.Kind {
	case spillway.EventContent:
		s.send(piece{content: e.Text})
	case spillway.EventReasoning:
		s.send(piece{reasoning: e.Text})
	case spillway.EventCallBegin:
		s.open = &spillway.ToolCall{Name: e.Name}
	case spillway.EventCallArguments:
		s.open.Arguments += e.Text
	case spillway.EventCallEnd:
		s.endCall()
	}
}

func (s *speech) endCall() {
	if s.open == nil {
		return
	}
	if c := callOf(*s.open); len(c) > 0 {
		s.send(piece{calls: c})
	}
	s.open = nil
}

// messages reads the messages of a chat.
func messages(v wire.Value) (list []spillway.Message, err error) {
	if v.Kind() == wire.Null {
		return nil, nil
	}
	err = v.Each(func(_ int, e wire.Value) error {
		m, err := message(e)
		list = append(list, m)
		return err
	})
	return list, wire.Within("messages", err)
}

func message(v wire.Value) (spillway.Message, error) {
	var in struct {
		Role     string       `json:"role"`
		Content  string       `json:"content"`
		Thinking string       `json:"thinking"`
		ToolName string       `json:"tool_name"`
		CallID   string       `json:"tool_call_id"`
		Images   []wire.Value `json:"images"`
		Calls    []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string     `json:"name"`
				Arguments wire.Value `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	if v.Kind() != wire.Object {
		return spillway.Message{}, v.Expected("an object with a role and a content")
	}
	if err := v.Into(&in); err != nil {
		return spillway.Message{}, err
	}
	m := spillway.Message{Role: in.Role, Content: in.Content, Reasoning: in.Thinking, Name: in.ToolName, ToolCallID: in.CallID}
	switch in.Role {
	case "system", "user", "assistant", "tool":
	default:
		return m, wire.Errorf("role", "is %.40q; there are system, user, assistant and tool", in.Role)
	}
	if len(in.Images) > 0 {
		return m, wire.Errorf("images", "are given; the models here take text alone")
	}
	for _, c := range in.Calls {
		arguments := "{}"
		if c.Function.Arguments.Kind() != wire.Null {
			arguments = string(c.Function.Arguments.Raw())
		}
		m.ToolCalls = append(m.ToolCalls, spillway.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: arguments})
	}
	return m, nil
}
