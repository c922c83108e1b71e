// Package ollama is Ollama's HTTP API: chat, generate, embed, and what is known of the models. Models come and go by
// pull and rm of the command line, not by this API.
package ollama

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
)

// family is the API of these paths: an error is {"error": "text"}.
var family = &server.API{Name: "ollama", Prefix: "/api/", Error: func(e *server.Error) any {
	return struct {
		Error string `json:"error"`
	}{e.Message}
}}

// Mount registers the API's paths.
func Mount(s *server.Server) {
	handle := func(pattern string, h server.Handler) { s.Handle(pattern, family, h) }
	handle("POST /api/chat", chat)
	handle("POST /api/generate", generate)
	handle("POST /api/embed", embed)
	handle("POST /api/embeddings", embedOne)
	handle("GET /api/tags", tags)
	handle("POST /api/show", show)
	handle("GET /api/ps", running)
	s.HandlePublic("GET /api/version", family, func(x *server.Exchange) error {
		return x.JSON(http.StatusOK, map[string]string{"version": s.Version()})
	})
}

// counts end an answer: tokens, and nanoseconds.
type counts struct {
	Reason         string `json:"done_reason,omitempty"`
	Total          int64  `json:"total_duration,omitempty"`
	Load           int64  `json:"load_duration,omitempty"`
	PromptTokens   int    `json:"prompt_eval_count,omitempty"`
	PromptDuration int64  `json:"prompt_eval_duration,omitempty"`
	Tokens         int    `json:"eval_count,omitempty"`
	Duration       int64  `json:"eval_duration,omitempty"`
}

func countsOf(x *server.Exchange, a *spillway.Answer, loaded time.Duration) counts {
	return counts{
		Reason: a.FinishReason, Total: time.Since(x.Began).Nanoseconds(), Load: loaded.Nanoseconds(), PromptTokens: len(a.PromptIDs),
		PromptDuration: a.Prefill.Nanoseconds(), Tokens: len(a.IDs), Duration: a.Decode.Nanoseconds(),
	}
}

// now is a time as answers have it.
func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// open loads the model of a request and says how long it took.
func open(x *server.Exchange, name string, keep keepAlive) (*pool.Held, time.Duration, error) {
	if name == "" {
		return nil, 0, server.Invalid("model", "model is missing: name one of those that /api/tags lists")
	}
	begin := time.Now()
	h, err := x.Model(name)
	if err != nil {
		return nil, 0, err
	}
	if keep.given {
		h.KeepAlive(keep.time)
	}
	return h, time.Since(begin), nil
}

// bytesOf is about the bytes of text that a prompt made of this JSON has; some tokenizers write a space with three.
func bytesOf(parts ...json.RawMessage) (n int64) {
	for _, p := range parts {
		for _, c := range p {
			n++
			if c == ' ' {
				n += 2
			}
		}
	}
	return n
}

// probability is a token of an answer with what was likely beside it.
type probability struct {
	Token   string        `json:"token"`
	LogProb float32       `json:"logprob"`
	Bytes   []int         `json:"bytes"`
	Top     []probability `json:"top_logprobs,omitempty"`
}

func probabilityOf(t spillway.Token) probability {
	p := probability{Token: string(t.Bytes), LogProb: t.LogProb, Bytes: ints(t.Bytes)}
	for _, o := range t.Top {
		p.Top = append(p.Top, probability{Token: string(o.Bytes), LogProb: o.LogProb, Bytes: ints(o.Bytes)})
	}
	return p
}

func ints(b []byte) []int {
	out := make([]int, len(b))
	for i, c := range b {
		out[i] = int(c)
	}
	return out
}

// call is a call of a tool; its arguments are an object.
type call struct {
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// callOf is a call; none where the end of the answer cut its arguments off.
func callOf(c spillway.ToolCall) []call {
	var out call
	out.Function.Name, out.Function.Arguments = c.Name, json.RawMessage(c.Arguments)
	if !json.Valid(out.Function.Arguments) || c.Arguments[0] != '{' {
		return nil
	}
	return []call{out}
}

// parameterSize is a number of parameters as people say it, such as 6.9B.
func parameterSize(n int64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}} {
		if v := float64(n) / unit.size; v >= 1 {
			if v >= 100 {
				return fmt.Sprintf("%.0f%s", v, unit.name)
			}
			return fmt.Sprintf("%.1f%s", v, unit.name)
		}
	}
	return fmt.Sprint(n)
}
