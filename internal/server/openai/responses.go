package openai

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/wire"
)

// responseBody is the body of /v1/responses.
type responseBody struct {
	Input        wire.Value `json:"input"`
	Instructions *string    `json:"instructions"`
	Most         *int       `json:"max_output_tokens"`
	Top          *int       `json:"top_logprobs"`
	Include      []string   `json:"include"`
	Store        *bool      `json:"store"`
	Previous     *string    `json:"previous_response_id"`
	Text         textOption `json:"text"`
	Reasoning    reasoning  `json:"reasoning"`
	Metadata     wire.Value `json:"metadata"`
	User         *string    `json:"user"`
	Truncation   *string    `json:"truncation"`
	Background   bool       `json:"background"`
	Conversation wire.Value `json:"conversation"`
	Template     wire.Value `json:"prompt"`
	Args         wire.Value `json:"chat_template_kwargs"`
	sampling
	tooling
}

type textOption struct {
	Format    responseFormat `json:"format"`
	Verbosity *string        `json:"verbosity"`
}

type reasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

func (b *responseBody) check() error {
	switch {
	case b.Most != nil && *b.Most < 1:
		return wire.Errorf("max_output_tokens", "is %d; it must be positive", *b.Most)
	case b.Top != nil && (*b.Top < 0 || *b.Top > spillway.MaxTopLogProbs):
		return wire.Errorf("top_logprobs", "is %d; it must be between 0 and %d", *b.Top, spillway.MaxTopLogProbs)
	case b.Background:
		return server.Invalid("background", "background is not supported; leave it out")
	case b.Conversation.Kind() != wire.Null:
		return server.Invalid("conversation", "conversation is not supported; use previous_response_id")
	case b.Template.Kind() != wire.Null:
		return server.Invalid("prompt", "prompt is not supported; give the text as input")
	case b.Truncation != nil && *b.Truncation != "disabled":
		return wire.Errorf("truncation", "is %.40q; there is disabled", *b.Truncation)
	case b.Metadata.Kind() != wire.Null && b.Metadata.Kind() != wire.Object:
		return wire.Within("metadata", b.Metadata.Expected("an object"))
	case b.N != nil && *b.N != 1:
		return wire.Errorf("n", "is %d; a response is one answer", *b.N)
	}
	if b.MaxTokens = b.Most; b.Search {
		return server.Invalid("use_beam_search", "use_beam_search is for /v1/completions and /v1/chat/completions")
	}
	return b.sampling.check()
}

// A responseJob is a response that may run.
type responseJob struct {
	x        *server.Exchange
	h        held
	r        spillway.Request
	a        *api
	body     *responseBody
	tools    *toolSet
	items    []json.RawMessage // of the request
	previous *record
	probs    bool
	reply    *reply
}

func (a *api) responses(x *server.Exchange) error {
	var body responseBody
	if err := x.Body(&body); err != nil {
		return err
	}
	j, err := a.responseJob(x, &body)
	if err != nil {
		return err
	}
	return j.run()
}

func (a *api) responseJob(x *server.Exchange, body *responseBody) (*responseJob, error) {
	if err := body.check(); err != nil {
		return nil, err
	}
	j := &responseJob{x: x, a: a, body: body, probs: slices.Contains(body.Include, "message.output_text.logprobs")}
	t, err := j.talk()
	if err != nil {
		return nil, err
	}
	if j.tools, err = body.readFlat(); err != nil {
		return nil, err
	}
	m, err := x.Model(body.Model)
	if err != nil {
		return nil, err
	}
	j.h = held{m}
	if j.r, err = j.request(m, t); err != nil {
		return nil, err
	}
	if err := x.Prepare(m, &j.r, t.text+textBytes(j.r.Tools)+textBytes(j.r.TemplateArgs), 1); err != nil {
		return nil, err
	}
	body.constrained.Format = body.Text.Format
	limit, err := body.limit(x, j.h, &j.r, j.tools, "text.format")
	if err != nil {
		return nil, err
	}
	j.r.Constraint = limit.Constraint()
	j.reply = newReply(j)
	return j, nil
}

// talk puts the conversation before the request and its input together.
func (j *responseJob) talk() (t *talk, err error) {
	t = &talk{}
	if text := j.body.Instructions; text != nil && *text != "" {
		t.push(spillway.Message{Role: "system", Content: *text})
	}
	if id := j.body.Previous; id != nil && *id != "" {
		if j.previous, err = j.a.record(j.x, *id); err != nil {
			e := server.ErrorOf(err)
			e.Code, e.Param = "previous_response_not_found", "previous_response_id"
			return nil, e
		}
		for _, item := range j.previous.history() {
			if err := t.add(item); err != nil {
				return nil, err
			}
		}
	}
	if j.items, err = inputItems(j.body.Input); err != nil {
		return nil, err
	}
	for i, item := range j.items {
		if err := t.add(item); err != nil {
			return nil, wire.Within(at("input", i, 0), err)
		}
	}
	return t, nil
}

func (j *responseJob) request(h *pool.Held, t *talk) (spillway.Request, error) {
	r, err := j.body.sampling.request(h)
	if err != nil {
		return r, err
	}
	r.Messages = t.list
	if j.probs {
		r.LogProbs = true
		if j.body.Top != nil {
			r.TopLogProbs = *j.body.Top
		}
	}
	j.tools.apply(&r)
	if args := j.body.Args; args.Kind() != wire.Null {
		if args.Kind() != wire.Object {
			return r, wire.Within("chat_template_kwargs", args.Expected("an object"))
		}
		r.TemplateArgs = args.Raw()
	}
	if e := j.body.Reasoning.Effort; e != nil {
		r.TemplateArgs, err = with(r.TemplateArgs, "reasoning_effort", *e)
	}
	return r, err
}

// run generates the response; its events go to a stream, if it is one.
func (j *responseJob) run() error {
	requests := []spillway.Request{j.r}
	counts := make([]counter, 1)
	requests[0].Events, requests[0].OnToken = j.reply.event, j.reply.token
	counts[0].listen(&requests[0])
	var out *server.Stream
	if j.body.Stream {
		out = j.x.Events()
		j.reply.emit = func(e *responseEvent) { _ = out.Event(e.Type, e) } // its error cancels the exchange
	}
	answers, err := run(j.x, j.h, requests)
	if err != nil {
		if out != nil && out.Started() {
			j.reply.failed(server.ErrorOf(err))
		}
		return err
	}
	final := j.reply.finish(answers[0], usageOf(answers, counts))
	if err := j.keep(final); err != nil {
		return err
	}
	if out != nil {
		return nil
	}
	return j.x.JSON(http.StatusOK, final)
}

// keep stores the response, unless the request forbids it.
func (j *responseJob) keep(final *response) error {
	if s := j.body.Store; s != nil && !*s {
		return nil
	}
	text, err := json.Marshal(final)
	if err != nil {
		return err
	}
	r := &record{id: final.ID, previous: j.previous, response: text}
	for _, item := range j.items { // which alias the body
		r.input = append(r.input, slices.Clone(item))
	}
	for i := range final.Output {
		if it := &final.Output[i]; it.Type == "function_call" && it.Status != "completed" {
			continue // it was cut off: nobody can answer it
		}
		item, err := json.Marshal(final.Output[i])
		if err != nil {
			return err
		}
		r.output = append(r.output, item)
	}
	j.a.store.put(r)
	return nil
}

// response is the object of a response.
type response struct {
	ID           string          `json:"id"`
	Object       string          `json:"object"`
	Created      int64           `json:"created_at"`
	Completed    *int64          `json:"completed_at"`
	Status       string          `json:"status"`
	Background   bool            `json:"background"`
	Error        *responseError  `json:"error"`
	Incomplete   *incomplete     `json:"incomplete_details"`
	Instructions *string         `json:"instructions"`
	Most         *int            `json:"max_output_tokens"`
	Model        string          `json:"model"`
	Output       []item          `json:"output"`
	Parallel     bool            `json:"parallel_tool_calls"`
	Previous     *string         `json:"previous_response_id"`
	Reasoning    reasoning       `json:"reasoning"`
	Store        bool            `json:"store"`
	Temperature  float32         `json:"temperature"`
	Text         responseText    `json:"text"`
	Choice       json.RawMessage `json:"tool_choice"`
	Tools        json.RawMessage `json:"tools"`
	TopLogProbs  int             `json:"top_logprobs"`
	TopP         float32         `json:"top_p"`
	Truncation   string          `json:"truncation"`
	Usage        *responseUsage  `json:"usage"`
	User         *string         `json:"user"`
	Metadata     json.RawMessage `json:"metadata"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseText struct {
	Format    json.RawMessage `json:"format"`
	Verbosity *string         `json:"verbosity,omitempty"`
}

type responseUsage struct {
	Input   int `json:"input_tokens"`
	InputIn struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output   int           `json:"output_tokens"`
	OutputIn answerDetails `json:"output_tokens_details"`
	Total    int           `json:"total_tokens"`
}

func (u usage) response() *responseUsage {
	out := &responseUsage{Input: u.Prompt, Output: u.Completion, Total: u.Total}
	out.InputIn.Cached = u.PromptIn.Cached
	if u.AnswerIn != nil {
		out.OutputIn = *u.AnswerIn
	}
	return out
}

// orJSON is a value's text, or another one if there is none.
func orJSON(v wire.Value, otherwise string) json.RawMessage {
	if v.Kind() == wire.Null {
		return json.RawMessage(otherwise)
	}
	return v.Raw()
}

// object is the response before anything came.
func (j *responseJob) object() *response {
	b, p := j.body, j.r.Sampling
	r := &response{
		ID: server.NewID("resp_"), Object: "response", Created: time.Now().Unix(), Status: "in_progress", Instructions: b.Instructions, Most: b.Most,
		Model: j.h.Name, Output: []item{}, Parallel: !j.tools.one, Previous: b.Previous, Reasoning: b.Reasoning, Store: b.Store == nil || *b.Store,
		Temperature: p.Temperature, TopP: p.TopP, Choice: orJSON(b.Choice, `"auto"`), Tools: orJSON(b.Tools, "[]"), Truncation: "disabled",
		User: b.User, Metadata: orJSON(b.Metadata, "{}"), TopLogProbs: j.r.TopLogProbs,
		Text: responseText{orJSON(b.Text.Format.raw, `{"type":"text"}`), b.Text.Verbosity},
	}
	if r.TopP == 0 {
		r.TopP = 1
	}
	return r
}
