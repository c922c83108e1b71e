package openai

import (
	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
)

// chunk is a piece of a streamed answer.
type chunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Choices []chunkChoice `json:"choices"`
	Usage   *usage        `json:"usage,omitempty"`
}

type chunkChoice struct {
	Index        int       `json:"index"`
	Delta        delta     `json:"delta"`
	LogProbs     *logProbs `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
	StopReason   any       `json:"stop_reason,omitempty"`
}

type delta struct {
	Role      string      `json:"role,omitempty"`
	Content   *string     `json:"content,omitempty"`
	Reasoning string      `json:"reasoning_content,omitempty"`
	ToolCalls []callDelta `json:"tool_calls,omitempty"`
}

type callDelta struct {
	Index    int           `json:"index"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function functionDelta `json:"function"`
}

type functionDelta struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// A chatStream writes one choice of a streamed answer. Its calls come from one goroutine.
type chatStream struct {
	j      *chatJob
	out    *server.Stream
	index  int
	begun  bool
	calls  bool
	tokens []spillway.Token // that no chunk has told of
	skip   bool             // a call that is one too many
}

func (j *chatJob) stream() error {
	out := j.x.Events()
	requests := j.requests()
	counts := make([]counter, j.n)
	choices := make([]chatStream, j.n)
	for i := range requests {
		choices[i] = chatStream{j: j, out: out, index: i}
		requests[i].Events, requests[i].OnToken = choices[i].event, choices[i].token
		counts[i].listen(&requests[i])
	}
	answers, err := runEach(j.x, j.h, requests, func(i int, a *spillway.Answer) { choices[i].finish(a) })
	if err != nil {
		return endStream(out, err)
	}
	if j.body.StreamOptions.Usage {
		u := usageOf(answers, counts)
		c := j.chunk()
		c.Choices, c.Usage = []chunkChoice{}, &u
		if err := out.Event("", c); err != nil {
			return err
		}
	}
	return out.Data("[DONE]")
}

// endStream tells of an error in a stream that has begun; else it is the answer.
func endStream(out *server.Stream, err error) error {
	if !out.Started() {
		return err
	}
	_ = out.Event("", server.PlainError(server.ErrorOf(err))) // the client may be gone
	return err
}

func (j *chatJob) chunk() chunk {
	return chunk{ID: j.id, Object: "chat.completion.chunk", Created: j.created, Model: j.h.Name}
}

func (s *chatStream) token(t spillway.Token) {
	if s.j.body.LogProbs {
		s.tokens = append(s.tokens, t)
	}
}

// begin sends the role.
func (s *chatStream) begin() {
	if !s.begun {
		s.begun = true
		s.send(chunkChoice{Delta: delta{Role: "assistant", Content: new(string)}})
	}
}

// send writes a chunk; an error of it cancels the exchange.
func (s *chatStream) send(c chunkChoice) {
	c.Index = s.index
	whole := s.j.chunk()
	whole.Choices = []chunkChoice{c}
	_ = s.out.Event("", whole)
}

// probs are the probabilities of the tokens that no chunk has told of.
func (s *chatStream) probs() *logProbs {
	if len(s.tokens) == 0 {
		return nil
	}
	p := &logProbs{Content: s.j.h.logProbsOf(s.tokens, s.j.r.TopLogProbs)}
	s.tokens = s.tokens[:0]
	return p
}

func (s *chatStream) event(e spillway.Event) {
	if s.skip = s.j.tools.one && e.Kind >= spillway.EventCallBegin && e.Call > 0; s.skip {
		return
	}
	s.begin()
	c := chunkChoice{}
	switch e.Kind {
	case spillway.EventContent:
		c.Delta.Content = &e.Text
	case spillway.EventReasoning:
		c.Delta.Reasoning = e.Text
	case spillway.EventCallBegin:
		s.calls = true
		c.Delta.ToolCalls = []callDelta{{Index: e.Call, ID: callID(e.ID), Type: "function", Function: functionDelta{Name: e.Name}}}
	case spillway.EventCallArguments:
		c.Delta.ToolCalls = []callDelta{{Index: e.Call, Function: functionDelta{Arguments: e.Text}}}
	case spillway.EventCallEnd:
		return
	}
	c.LogProbs = s.probs()
	s.send(c)
}

// finish sends what is left, and how the answer ended.
func (s *chatStream) finish(a *spillway.Answer) {
	s.begin()
	if p := s.probs(); p != nil {
		s.send(chunkChoice{Delta: delta{Content: new(string)}, LogProbs: p})
	}
	reason := finishReason(a, s.calls)
	s.send(chunkChoice{FinishReason: &reason, StopReason: stopReason(a)})
}
