package ollama

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/wire"
)

// vectorBytes is the heap for each value of a vector: itself, and twice its text.
const vectorBytes = 32

type embedRequest struct {
	Model      string       `json:"model"`
	Input      wire.Strings `json:"input"`
	Truncate   *bool        `json:"truncate"`
	Dimensions int          `json:"dimensions"`
	KeepAlive  keepAlive    `json:"keep_alive"`
}

type embedded struct {
	Model   string      `json:"model"`
	Vectors [][]float32 `json:"embeddings"`
	Total   int64       `json:"total_duration"`
	Load    int64       `json:"load_duration"`
	Tokens  int         `json:"prompt_eval_count"`
}

func embed(x *server.Exchange) error {
	var body embedRequest
	if err := x.Body(&body); err != nil {
		return err
	}
	h, loaded, err := open(x, body.Model, body.KeepAlive)
	if err != nil {
		return err
	}
	if n := body.Dimensions; n < 0 || n > h.Layout().Hidden {
		return wire.Errorf("dimensions", "is %d; the model's vectors have %d", n, h.Layout().Hidden)
	}
	if err := x.Lease(int64(len(body.Input))*int64(h.Layout().Hidden)*vectorBytes, "vectors"); err != nil {
		return err
	}
	out := embedded{Model: body.Model, Vectors: [][]float32{}, Load: loaded.Nanoseconds()}
	for i, text := range body.Input {
		v, n, err := vector(x, h, text, body.Dimensions, body.Truncate == nil || *body.Truncate)
		if err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
		out.Vectors, out.Tokens = append(out.Vectors, v), out.Tokens+n
	}
	out.Total = time.Since(x.Began).Nanoseconds()
	return x.JSON(http.StatusOK, out)
}

// vector returns the vector of a text and its tokens; a text that is too long is cut if the request says so.
func vector(x *server.Exchange, h *pool.Held, text string, dimensions int, cut bool) ([]float32, int, error) {
	size := bytesOf([]byte(text))
	v, usage, err := x.Embed(h, spillway.EmbedRequest{Text: text, Dimensions: dimensions}, size)
	if cut && err != nil && server.ErrorOf(err).Code == server.CodeTooLong {
		if most := h.LongestToken * h.Options().Context; len(text) > most {
			text = strings.ToValidUTF8(text[:most], "")
		}
		var ids []int32
		if ids, err = x.Encode(h, size, func() ([]int32, error) { return h.Tokens(spillway.Request{Prompt: text, Raw: true}) }); err == nil {
			ids = ids[:min(len(ids), h.Options().Context)]
			v, usage, err = x.Embed(h, spillway.EmbedRequest{IDs: ids, Dimensions: dimensions}, 0)
		}
	}
	return v, usage.PromptTokens, err
}

// embedOne is the older form, for one text.
func embedOne(x *server.Exchange) error {
	var body struct {
		Model     string    `json:"model"`
		Prompt    string    `json:"prompt"`
		KeepAlive keepAlive `json:"keep_alive"`
	}
	if err := x.Body(&body); err != nil {
		return err
	}
	h, _, err := open(x, body.Model, body.KeepAlive)
	if err != nil {
		return err
	}
	v := []float32{}
	if body.Prompt != "" {
		if v, _, err = vector(x, h, body.Prompt, 0, true); err != nil {
			return err
		}
	}
	return x.JSON(http.StatusOK, map[string]any{"embedding": v})
}
