// Package anthropic is Anthropic's HTTP API: messages, and counting their tokens.
package anthropic

import (
	"net/http"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
)

// family is the API of these paths.
var family = &server.API{Name: "anthropic", Prefix: "/v1/messages", Error: errorObject}

type errorBody struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

func errorObject(e *server.Error) any {
	b := errorBody{Type: "error"}
	b.Error.Type, b.Error.Message = errorType(e.Status), e.Message
	return b
}

func errorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable:
		return "overloaded_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// Mount registers the API's paths.
func Mount(s *server.Server) {
	s.Handle("POST /v1/messages", family, messages)
	s.Handle("POST /v1/messages/count_tokens", family, countTokens)
}

// usage counts tokens. A request that marks what is to be cached learns what was read from the cache; to others all of
// the prompt is input.
type usage struct {
	Input  int `json:"input_tokens"`
	Create int `json:"cache_creation_input_tokens"`
	Read   int `json:"cache_read_input_tokens"`
	Output int `json:"output_tokens"`
}

func (b *body) usage(prompt, cached, output int) usage {
	if !b.marked {
		cached = 0
	}
	return usage{Input: prompt - cached, Read: cached, Output: output}
}

// message is an answer.
type message struct {
	ID       string  `json:"id"`
	Type     string  `json:"type"`
	Role     string  `json:"role"`
	Model    string  `json:"model"`
	Content  []any   `json:"content"`
	Reason   *string `json:"stop_reason"`
	Sequence *string `json:"stop_sequence"`
	Usage    usage   `json:"usage"`
}

func (b *body) message(id string) message {
	return message{ID: id, Type: "message", Role: "assistant", Model: b.Model, Content: []any{}}
}

// A job is a request that may run.
type job struct {
	*body
	x    *server.Exchange
	h    *pool.Held
	r    spillway.Request
	clip bool // the context leaves less than max_tokens
}

func messages(x *server.Exchange) error {
	j, err := newJob(x)
	if err != nil {
		return err
	}
	if j.Stream {
		return j.stream()
	}
	return j.plain()
}

func newJob(x *server.Exchange) (*job, error) {
	j := &job{x: x, body: &body{}}
	if err := x.Body(j.body); err != nil {
		return nil, err
	}
	if err := j.check(true); err != nil {
		return nil, err
	}
	var err error
	if j.h, err = x.Model(j.Model); err != nil {
		return nil, err
	}
	if j.r, err = j.request(j.h); err != nil {
		return nil, err
	}
	if j.r.IDs, err = j.tokens(x, j.h, j.r); err != nil {
		return nil, err
	}
	j.r.Messages = nil
	if room := j.h.Options().Context - len(j.r.IDs); room > 0 && room < j.r.MaxTokens { // agents ask for more than they use
		j.r.MaxTokens, j.clip = room, true
	}
	if err := x.Prepare(j.h, &j.r, 0, 1); err != nil {
		return nil, err
	}
	return j, j.constrain(x, j.h, &j.r)
}

// tokens are the ids of the prompt.
func (b *body) tokens(x *server.Exchange, h *pool.Held, r spillway.Request) ([]int32, error) {
	return x.EncodeRequest(h, r, b.text(), h.Tokens)
}

func countTokens(x *server.Exchange) error {
	b := &body{}
	if err := x.Body(b); err != nil {
		return err
	}
	if err := b.check(false); err != nil {
		return err
	}
	h, err := x.Model(b.Model)
	if err != nil {
		return err
	}
	r, err := b.request(h)
	if err != nil {
		return err
	}
	ids, err := b.tokens(x, h, r)
	if err != nil {
		return err
	}
	return x.JSON(http.StatusOK, struct {
		Tokens int `json:"input_tokens"`
	}{len(ids)})
}

// plain answers in one piece.
func (j *job) plain() error {
	a, err := j.x.Generate(j.h, j.r)
	if err != nil {
		return err
	}
	m := j.message(server.NewID("msg_"))
	if a.Reasoning != "" && !j.silent() {
		m.Content = append(m.Content, thinkingBlock{"thinking", a.Reasoning, signature})
	}
	if a.Content != "" {
		m.Content = append(m.Content, textBlock{Type: "text", Text: a.Content})
	}
	for _, c := range a.ToolCalls {
		m.Content = append(m.Content, toolBlock{"tool_use", server.NewID("toolu_"), c.Name, input(c.Arguments)})
	}
	m.Reason, m.Sequence = j.ending(a)
	m.Usage = j.usage(len(a.PromptIDs), a.CachedTokens, len(a.IDs))
	return j.x.JSON(http.StatusOK, m)
}

// ending says why an answer ended.
func (j *job) ending(a *spillway.Answer) (reason, sequence *string) {
	why := "end_turn"
	switch {
	case a.FinishReason == spillway.FinishLength && j.clip:
		why = "model_context_window_exceeded"
	case a.FinishReason == spillway.FinishLength:
		why = "max_tokens"
	case a.StopSequence != "":
		why, sequence = "stop_sequence", &a.StopSequence
	case len(a.ToolCalls) > 0:
		why = "tool_use"
	}
	return &why, sequence
}
