package ollama

import (
	"net/http"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
)

type generateRequest struct {
	common
	Prompt  string  `json:"prompt"`
	Suffix  string  `json:"suffix"`
	System  string  `json:"system"`
	Raw     bool    `json:"raw"`
	Context []int32 `json:"context"`
}

type generateLine struct {
	Model    string        `json:"model"`
	Created  string        `json:"created_at"`
	Response string        `json:"response"`
	Thinking string        `json:"thinking,omitempty"`
	LogProbs []probability `json:"logprobs,omitempty"`
	Done     bool          `json:"done"`
	Context  []int32       `json:"context,omitempty"`
	counts
}

func generate(x *server.Exchange) error {
	var body generateRequest
	if err := x.Body(&body); err != nil {
		return err
	}
	if body.Suffix != "" {
		return server.Invalid("suffix", "filling in between a prompt and a suffix is not supported; leave suffix out")
	}
	h, loaded, err := open(x, body.Model, body.KeepAlive)
	if err != nil {
		return err
	}
	if body.Prompt == "" && len(body.Context) == 0 {
		return x.JSON(http.StatusOK, generateLine{Model: body.Model, Created: now(), Done: true, counts: counts{Reason: loadReason(body.KeepAlive)}})
	}
	r, err := body.request(h)
	if err != nil {
		return err
	}
	r.Dialects.Tool = spillway.NoDialect
	body.prompt(&r)
	if err := prepare(x, h, &r, body); err != nil {
		return err
	}
	if err := body.constrain(x, h, &r); err != nil {
		return err
	}
	v := &generateVoice{voice: voice{x: x, model: body.Model}, raw: body.Raw}
	return v.answer(h, r, body.streams(), loaded, v)
}

// prompt puts the text into a request.
func (g *generateRequest) prompt(r *spillway.Request) {
	if r.Raw = g.Raw; g.Raw {
		r.Prompt = g.Prompt
		return
	}
	if g.System != "" {
		r.Messages = append(r.Messages, spillway.Message{Role: "system", Content: g.System})
	}
	r.Messages = append(r.Messages, spillway.Message{Role: "user", Content: g.Prompt})
}

// prepare makes the prompt's tokens, behind those of an earlier conversation.
func prepare(x *server.Exchange, h *pool.Held, r *spillway.Request, g generateRequest) error {
	text := bytesOf([]byte(g.Prompt), []byte(g.System), r.TemplateArgs)
	if len(g.Context) == 0 {
		return x.Prepare(h, r, text, 1)
	}
	vocab := h.Layout().Vocab
	for _, id := range g.Context {
		if id < 0 || int(id) >= vocab {
			return server.Invalid("context", "context holds a token that is not in the model's vocabulary")
		}
	}
	if g.Prompt != "" {
		if err := x.Prepare(h, r, text, 1); err != nil {
			return err
		}
	}
	r.IDs, r.Messages, r.Prompt = append(append([]int32{}, g.Context...), r.IDs...), nil, ""
	return x.Prepare(h, r, 0, 1)
}

// generateVoice writes the answers of generate.
type generateVoice struct {
	voice
	raw bool
}

func (v *generateVoice) line(p piece) any {
	l := generateLine{Model: v.model, Created: now(), Response: p.content, Thinking: p.reasoning, LogProbs: p.probs, Done: p.done, counts: p.counts}
	if !v.raw {
		l.Context = p.context
	}
	return l
}
