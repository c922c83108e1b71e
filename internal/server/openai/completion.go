package openai

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/wire"
	"github.com/spillway/spillway/internal/tokenizer"
)

// plainText encodes without the tokenizer's own tokens.
var plainText = tokenizer.Options{}

// textRequest is the body of /v1/completions.
type textRequest struct {
	Prompt   wire.Value `json:"prompt"`
	Suffix   wire.Value `json:"suffix"`
	Echo     bool       `json:"echo"`
	LogProbs *int       `json:"logprobs"`
	Special  *bool      `json:"add_special_tokens"`
	sampling
}

// defaultTokens bounds a completion where the request does not, as OpenAI has it.
const defaultTokens = 16

func (b *textRequest) check() error {
	switch {
	case b.Suffix.Kind() == wire.String && len(b.Suffix.Raw()) > len(`""`), b.Suffix.Kind() > wire.String:
		return server.Invalid("suffix", "suffix is not supported: the models here write what follows a prompt; leave it out")
	case b.LogProbs != nil && (*b.LogProbs < 0 || *b.LogProbs > spillway.MaxTopLogProbs):
		return wire.Errorf("logprobs", "is %d; it must be between 0 and %d", *b.LogProbs, spillway.MaxTopLogProbs)
	case b.Echo && b.Stream && b.LogProbs != nil:
		return wire.Errorf("echo", "does not go with stream and logprobs together")
	}
	if b.Search && b.LogProbs != nil {
		return server.Invalid("logprobs", "logprobs does not go with use_beam_search")
	}
	if b.MaxTokens == nil {
		n := defaultTokens
		b.MaxTokens = &n
	}
	if *b.MaxTokens == 0 && !b.Echo {
		return wire.Errorf("max_tokens", "is 0; it must be positive, except with echo")
	}
	return b.sampling.check()
}

// A textJob is a completion of one or several prompts that may run.
type textJob struct {
	x        *server.Exchange
	h        held
	body     *textRequest
	prompts  []spillway.Request
	n, of    int
	id       string
	created  int64
	requests []spillway.Request // of answers for each prompt
	limit    *spillway.Limit
}

func (a *api) completions(x *server.Exchange) error {
	var body textRequest
	if err := x.Body(&body); err != nil {
		return err
	}
	j, err := a.textJob(x, &body)
	if err != nil {
		return err
	}
	if body.Stream {
		return j.stream()
	}
	return j.plain()
}

func (a *api) textJob(x *server.Exchange, body *textRequest) (*textJob, error) {
	if err := body.check(); err != nil {
		return nil, err
	}
	n, of, err := body.answers()
	if err != nil {
		return nil, err
	}
	prompts, err := readPrompts(body.Prompt, "prompt")
	if err != nil {
		return nil, err
	}
	m, err := x.Model(body.Model)
	if err != nil {
		return nil, err
	}
	r, err := body.request(m)
	if err != nil {
		return nil, err
	}
	body.probabilities(&r, of)
	j := &textJob{x: x, h: held{m}, body: body, n: n, of: of, id: server.NewID("cmpl-"), created: time.Now().Unix()}
	r.Dialects = spillway.Dialects{}.Or(spillway.NoDialect)
	if j.limit, err = body.limit(x, j.h, &r, &toolSet{}, "response_format"); err != nil {
		return nil, err
	}
	if err := j.prepare(r, prompts); err != nil {
		return nil, err
	}
	return j, nil
}

// probabilities says what is told of tokens.
func (b *textRequest) probabilities(r *spillway.Request, of int) {
	if b.LogProbs != nil {
		r.LogProbs, r.TopLogProbs, r.PromptLogProbs = true, *b.LogProbs, b.Echo
	}
	if b.BestOf != nil && of > 1 {
		r.LogProbs = true
	}
	if p := b.PromptLogProbs; p != nil {
		r.PromptLogProbs, r.TopLogProbs = true, max(r.TopLogProbs, *p)
	}
	r.MaxTokens = max(r.MaxTokens, 1) // of an answer of no tokens the first one is dropped
}

// prepare makes the requests of all prompts and their answers.
func (j *textJob) prepare(r spillway.Request, prompts []prompt) error {
	longest := r
	for i, p := range prompts {
		one := r
		if err := j.h.encode(j.x, &one, p, j.body.Special == nil || *j.body.Special); err != nil {
			return wire.Within(at("prompt", i, len(prompts)), err)
		}
		if len(one.IDs) > len(longest.IDs) {
			longest = one
		}
		j.prompts = append(j.prompts, one)
		for k := range j.of {
			each, p := one, *one.Sampling
			p.Seed += uint64(k)
			each.Sampling, each.Constraint = &p, j.limit.Constraint()
			j.requests = append(j.requests, each)
		}
	}
	return j.x.LeaseAnswers(j.h.Held, longest, len(j.requests))
}

// textAnswer is a completion, or a chunk of one.
type textAnswer struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []textChoice `json:"choices"`
	Usage   *usage       `json:"usage,omitempty"`
}

type textChoice struct {
	Index          int           `json:"index"`
	Text           string        `json:"text"`
	LogProbs       *textLogProbs `json:"logprobs"`
	FinishReason   *string       `json:"finish_reason"`
	StopReason     any           `json:"stop_reason"`
	PromptLogProbs any           `json:"prompt_logprobs,omitempty"`
}

func (j *textJob) answer() textAnswer {
	return textAnswer{ID: j.id, Object: "text_completion", Created: j.created, Model: j.h.Name}
}

func (j *textJob) plain() error {
	answers, err := j.answers()
	if err != nil {
		return err
	}
	out := j.answer()
	u := j.usage(answers)
	out.Usage = &u
	for p := range j.prompts {
		for k, a := range j.best(answers[p]) {
			c, err := j.choice(p*j.n+k, a)
			if err != nil {
				return err
			}
			out.Choices = append(out.Choices, c)
		}
	}
	return j.x.JSON(http.StatusOK, out)
}

// answers are those to each prompt; a search may find fewer than it was asked for.
func (j *textJob) answers() ([][]*spillway.Answer, error) {
	if j.body.Search {
		all := make([][]*spillway.Answer, len(j.prompts))
		for i, p := range j.prompts {
			var err error
			if all[i], err = j.body.beams(j.x, j.h, p, j.of); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	flat, err := run(j.x, j.h, j.requests)
	return slices.Collect(slices.Chunk(flat, j.of)), err
}

// usage adds up all prompts.
func (j *textJob) usage(answers [][]*spillway.Answer) usage {
	var u usage
	for _, list := range answers {
		one := usageOf(list, nil)
		u.Prompt += one.Prompt
		u.PromptIn.Cached += one.PromptIn.Cached
		u.Completion += one.Completion
	}
	if *j.body.MaxTokens == 0 {
		u.Completion = 0
	}
	u.Total = u.Prompt + u.Completion
	return u
}

// best are the n answers with the highest probability a token, the highest first; all of them, in their
// order, where no choice was asked for.
func (j *textJob) best(answers []*spillway.Answer) []*spillway.Answer {
	if j.of == j.n {
		return answers
	}
	sorted := slices.Clone(answers)
	slices.SortStableFunc(sorted, func(a, b *spillway.Answer) int { return cmp.Compare(likelihood(b), likelihood(a)) })
	return sorted[:j.n]
}

// likelihood is the mean of the logarithms of the tokens' probabilities.
func likelihood(a *spillway.Answer) float64 {
	if len(a.Tokens) == 0 {
		return math.Inf(-1)
	}
	sum := 0.0
	for _, t := range a.Tokens {
		sum += float64(t.LogProb)
	}
	return sum / float64(len(a.Tokens))
}

func (j *textJob) choice(index int, a *spillway.Answer) (textChoice, error) {
	reason := finishReason(a, false)
	c := textChoice{Index: index, Text: a.Text, FinishReason: &reason, StopReason: stopReason(a)}
	tokens := a.Tokens
	if *j.body.MaxTokens == 0 {
		c.Text, tokens, c.StopReason, reason = "", nil, nil, "length"
	}
	prompt := ""
	if j.body.Echo {
		var err error
		if prompt, err = j.h.text(a.PromptIDs); err != nil {
			return c, err
		}
		c.Text = prompt + c.Text
	}
	if n := j.body.LogProbs; n != nil {
		c.LogProbs = &textLogProbs{Tokens: []string{}, Tok: []*float32{}, Top: []*map[string]float32{}, Offsets: []int{}}
		var at textOffset
		if j.body.Echo {
			c.LogProbs.add(j.h, a.PromptTokens, *n, true, &at)
		}
		c.LogProbs.add(j.h, tokens, *n, false, &at)
	}
	if n := j.body.PromptLogProbs; n != nil {
		c.PromptLogProbs = j.h.promptLogProbs(a, *n)
	}
	return c, nil
}

// text is the text of a prompt.
func (h held) text(ids []int32) (string, error) {
	tok, err := h.Tokenizer()
	if err != nil {
		return "", err
	}
	return tok.DecodeText(ids, true)
}

func (j *textJob) stream() error {
	out := j.x.Events()
	send := func(c textChoice) {
		whole := j.answer()
		whole.Choices = []textChoice{c}
		_ = out.Event("", whole) // its error cancels the exchange
	}
	streams := make([]textStream, len(j.requests))
	for i := range j.requests {
		streams[i] = textStream{j: j, index: i, send: send}
		j.requests[i].Read = true // for its events
		j.requests[i].Dialects = spillway.Dialects{}.Or(spillway.NoDialect)
		j.requests[i].Events, j.requests[i].OnToken = streams[i].event, streams[i].token
	}
	flat, err := runEach(j.x, j.h, j.requests, func(i int, a *spillway.Answer) { streams[i].finish(a) })
	if err != nil {
		return endStream(out, err)
	}
	if j.body.StreamOptions.Usage {
		whole, u := j.answer(), j.usage(slices.Collect(slices.Chunk(flat, j.of)))
		whole.Choices, whole.Usage = []textChoice{}, &u
		if err := out.Event("", whole); err != nil {
			return err
		}
	}
	return out.Data("[DONE]")
}

// A textStream writes one choice of a streamed completion. Its calls come from one goroutine.
type textStream struct {
	j      *textJob
	index  int
	send   func(textChoice)
	begun  bool
	tokens []spillway.Token
	at     textOffset
}

func (s *textStream) token(t spillway.Token) {
	if s.j.body.LogProbs != nil {
		s.tokens = append(s.tokens, t)
	}
}

// begin sends the prompt where it is to be echoed.
func (s *textStream) begin() {
	if s.begun || !s.j.body.Echo {
		return
	}
	s.begun = true
	if text, err := s.j.h.text(s.j.requests[s.index].IDs); err == nil && text != "" {
		s.send(textChoice{Index: s.index, Text: text})
	}
}

func (s *textStream) event(e spillway.Event) {
	s.begin()
	if *s.j.body.MaxTokens > 0 {
		s.send(textChoice{Index: s.index, Text: e.Text, LogProbs: s.probs()})
	}
}

func (s *textStream) probs() *textLogProbs {
	if len(s.tokens) == 0 {
		return nil
	}
	p := &textLogProbs{}
	p.add(s.j.h, s.tokens, *s.j.body.LogProbs, false, &s.at)
	s.tokens = s.tokens[:0]
	return p
}

func (s *textStream) finish(a *spillway.Answer) {
	s.begin()
	reason := finishReason(a, false)
	s.send(textChoice{Index: s.index, LogProbs: s.probs(), FinishReason: &reason, StopReason: stopReason(a)})
}
