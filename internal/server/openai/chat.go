package openai

import (
	"net/http"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/wire"
)

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	Messages   wire.Value `json:"messages"`
	Most       *int       `json:"max_completion_tokens"`
	LogProbs   bool       `json:"logprobs"`
	Top        *int       `json:"top_logprobs"`
	Args       wire.Value `json:"chat_template_kwargs"`
	Effort     *string    `json:"reasoning_effort"`
	Generation *bool      `json:"add_generation_prompt"`
	Continue   bool       `json:"continue_final_message"`
	Functions  wire.Value `json:"functions"`
	Modalities []string   `json:"modalities"`
	sampling
	tooling
}

// read makes a request of the body, apart from what depends on the model.
func (b *chatRequest) check() error {
	if b.Most != nil {
		if *b.Most < 1 {
			return wire.Errorf("max_completion_tokens", "is %d; it must be positive", *b.Most)
		}
		b.MaxTokens = b.Most
	}
	switch {
	case b.MaxTokens != nil && *b.MaxTokens < 1:
		return wire.Errorf("max_tokens", "is %d; it must be positive", *b.MaxTokens)
	case b.Top != nil && !b.LogProbs:
		return wire.Errorf("top_logprobs", "needs logprobs to be true")
	case b.Top != nil && (*b.Top < 0 || *b.Top > spillway.MaxTopLogProbs):
		return wire.Errorf("top_logprobs", "is %d; it must be between 0 and %d", *b.Top, spillway.MaxTopLogProbs)
	case b.BestOf != nil:
		return server.Invalid("best_of", "best_of is for /v1/completions")
	case b.Functions.Kind() != wire.Null:
		return server.Invalid("functions", "functions is not supported; use tools")
	case b.Generation != nil && *b.Generation && b.Continue:
		return wire.Errorf("continue_final_message", "does not go with add_generation_prompt")
	}
	if b.Search && b.LogProbs {
		return server.Invalid("logprobs", "logprobs does not go with use_beam_search")
	}
	for _, m := range b.Modalities {
		if m != "text" {
			return wire.Errorf("modalities", "has %.40q; there is text", m)
		}
	}
	return b.sampling.check()
}

// template puts what the template is told into a request.
func (b *chatRequest) template(r *spillway.Request) (err error) {
	r.Continue = b.Continue
	if b.Args.Kind() != wire.Null {
		if b.Args.Kind() != wire.Object {
			return wire.Within("chat_template_kwargs", b.Args.Expected("an object"))
		}
		r.TemplateArgs = b.Args.Raw()
	}
	if b.Effort != nil {
		if r.TemplateArgs, err = with(r.TemplateArgs, "reasoning_effort", *b.Effort); err != nil {
			return err
		}
	}
	if b.Generation != nil {
		r.TemplateArgs, err = with(r.TemplateArgs, "add_generation_prompt", *b.Generation)
	}
	return err
}

// A chatJob is a chat completion that may run.
type chatJob struct {
	completion
	body  *chatRequest
	tools *toolSet
}

// completion is what all answers of one request share.
type completion struct {
	x       *server.Exchange
	h       held
	r       spillway.Request
	limit   *spillway.Limit
	n       int
	id      string
	created int64
}

func (a *api) chat(x *server.Exchange) error {
	var body chatRequest
	if err := x.Body(&body); err != nil {
		return err
	}
	j, err := a.chatJob(x, &body)
	if err != nil {
		return err
	}
	if body.Stream {
		return j.stream()
	}
	return j.plain()
}

// chatJob checks everything that can be checked before the model runs.
func (a *api) chatJob(x *server.Exchange, body *chatRequest) (*chatJob, error) {
	if err := body.check(); err != nil {
		return nil, err
	}
	n, _, err := body.answers()
	if err != nil {
		return nil, err
	}
	list, text, err := messages(body.Messages)
	if err != nil {
		return nil, err
	}
	tools, err := body.tooling.read()
	if err != nil {
		return nil, err
	}
	h, err := x.Model(body.Model)
	if err != nil {
		return nil, err
	}
	j := &chatJob{completion{x: x, h: held{h}, n: n, id: server.NewID("chatcmpl-"), created: time.Now().Unix()}, body, tools}
	if j.r, err = j.request(list); err != nil {
		return nil, err
	}
	text += textBytes(j.r.Tools) + textBytes(j.r.TemplateArgs)
	if err := x.PrepareBy(h, &j.r, text, n, j.h.renderAny); err != nil {
		return nil, err
	}
	j.limit, err = body.limit(x, j.h, &j.r, tools, "response_format")
	return j, err
}

// request puts the body over the model's defaults.
func (j *chatJob) request(list []spillway.Message) (spillway.Request, error) {
	r, err := j.body.request(j.h.Held)
	if err != nil {
		return r, err
	}
	r.Messages, r.LogProbs = list, j.body.LogProbs
	if j.body.Top != nil {
		r.TopLogProbs = *j.body.Top
	}
	if p := j.body.PromptLogProbs; p != nil {
		r.PromptLogProbs, r.TopLogProbs = true, max(r.TopLogProbs, *p)
	}
	if j.tools.apply(&r); j.body.Search && r.Tools != nil {
		return r, server.Invalid("tools", "tools does not go with use_beam_search")
	}
	return r, j.body.template(&r)
}

// requests are the requests of the answers: each has a seed and a constraint of its own.
func (c *completion) requests() []spillway.Request {
	all := make([]spillway.Request, c.n)
	for i := range all {
		all[i] = c.r
		all[i].Constraint = c.limit.Constraint()
		p := *c.r.Sampling
		p.Seed += uint64(i)
		all[i].Sampling = &p
	}
	return all
}

// chatAnswer is the answer that is no stream.
type chatAnswer struct {
	ID             string       `json:"id"`
	Object         string       `json:"object"`
	Created        int64        `json:"created"`
	Model          string       `json:"model"`
	Choices        []chatChoice `json:"choices"`
	Usage          usage        `json:"usage"`
	PromptLogProbs any          `json:"prompt_logprobs,omitempty"`
}

type chatChoice struct {
	Index        int         `json:"index"`
	Message      chatMessage `json:"message"`
	LogProbs     *logProbs   `json:"logprobs"`
	FinishReason string      `json:"finish_reason"`
	StopReason   any         `json:"stop_reason"` // the stop text, as vLLM has it
}

type chatMessage struct {
	Role      string              `json:"role"`
	Content   *string             `json:"content"`
	Refusal   *string             `json:"refusal"`
	Reasoning string              `json:"reasoning_content,omitempty"`
	ToolCalls []spillway.ToolCall `json:"tool_calls,omitempty"`
}

func (j *chatJob) plain() error {
	requests := j.requests()
	counts := make([]counter, j.n)
	for i := range requests {
		counts[i].listen(&requests[i])
	}
	answers, err := j.answers(requests)
	if err != nil {
		return err
	}
	out := chatAnswer{ID: j.id, Object: "chat.completion", Created: j.created, Model: j.h.Name, Usage: usageOf(answers, counts)}
	for i, a := range answers {
		out.Choices = append(out.Choices, j.choice(i, a))
	}
	if j.body.PromptLogProbs != nil {
		out.PromptLogProbs = j.h.promptLogProbs(answers[0], *j.body.PromptLogProbs)
	}
	return j.x.JSON(http.StatusOK, out)
}

// answers are those of all choices.
func (j *chatJob) answers(requests []spillway.Request) ([]*spillway.Answer, error) {
	if j.body.Search {
		return j.body.beams(j.x, j.h, j.r, j.n)
	}
	return run(j.x, j.h, requests)
}

func (j *chatJob) choice(i int, a *spillway.Answer) chatChoice {
	c := chatChoice{Index: i, Message: chatMessage{Role: "assistant", Content: &a.Content, Reasoning: a.Reasoning}, StopReason: stopReason(a)}
	calls := a.ToolCalls
	if j.tools.one && len(calls) > 1 {
		calls = calls[:1]
	}
	for _, call := range calls {
		call.ID = callID(call.ID)
		c.Message.ToolCalls = append(c.Message.ToolCalls, call)
	}
	if len(calls) > 0 && a.Content == "" {
		c.Message.Content = nil
	}
	c.FinishReason = finishReason(a, len(calls) > 0)
	if j.body.LogProbs {
		c.LogProbs = &logProbs{Content: j.h.logProbsOf(a.Tokens, j.r.TopLogProbs)}
	}
	return c
}

// callID is the id of a call, which few models give.
func callID(own string) string {
	if own == "" {
		return server.NewID("call_")
	}
	return own
}

// finishReason is how an answer ended, in the API's words.
func finishReason(a *spillway.Answer, calls bool) string {
	switch {
	case a.FinishReason == spillway.FinishLength:
		return "length"
	case calls:
		return "tool_calls"
	}
	return "stop"
}

func stopReason(a *spillway.Answer) any {
	if a.StopSequence == "" {
		return nil
	}
	return a.StopSequence
}
