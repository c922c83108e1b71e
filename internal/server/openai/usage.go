package openai

import "github.com/spillway/spillway"

// usage is what a request cost.
type usage struct {
	Prompt     int            `json:"prompt_tokens"`
	Completion int            `json:"completion_tokens"`
	Total      int            `json:"total_tokens"`
	PromptIn   promptDetails  `json:"prompt_tokens_details"`
	AnswerIn   *answerDetails `json:"completion_tokens_details,omitempty"`
}

type promptDetails struct {
	Cached int `json:"cached_tokens"`
}

type answerDetails struct {
	Reasoning int `json:"reasoning_tokens"`
}

// usageOf adds up the answers to one prompt.
func usageOf(answers []*spillway.Answer, counts []counter) usage {
	var u usage
	for i, a := range answers {
		u.Completion += len(a.IDs)
		if i == 0 {
			u.Prompt, u.PromptIn.Cached = len(a.PromptIDs), a.CachedTokens
		}
	}
	if counts != nil {
		u.AnswerIn = &answerDetails{}
		for _, c := range counts {
			u.AnswerIn.Reasoning += c.reasoning
		}
	}
	u.Total = u.Prompt + u.Completion
	return u
}

// A counter counts the tokens of an answer's reasoning: those that come while the text is reasoning.
type counter struct {
	reasoning int
	last      int // tokens since the last event
	within    bool
}

// listen counts what a request's answer brings, before others hear of it.
func (c *counter) listen(r *spillway.Request) {
	tokens, events := r.OnToken, r.Events
	r.OnToken = func(t spillway.Token) {
		c.token()
		if tokens != nil {
			tokens(t)
		}
	}
	r.Events = func(e spillway.Event) {
		c.event(e)
		if events != nil {
			events(e)
		}
	}
}

func (c *counter) token() { c.last++ }

func (c *counter) event(e spillway.Event) {
	if c.within = e.Kind == spillway.EventReasoning; c.within {
		c.reasoning += c.last
	}
	c.last = 0
}
