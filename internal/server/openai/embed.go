package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/wire"
)

// vectorBytes is the heap for each value of a vector: itself, and twice its text.
const vectorBytes = 32

// embedBody is the body of /v1/embeddings.
type embedBody struct {
	Model      string     `json:"model"`
	Input      wire.Value `json:"input"`
	Format     string     `json:"encoding_format"`
	Dimensions *int       `json:"dimensions"`
	Priority   int        `json:"priority"`
}

type embedAnswer struct {
	Object string      `json:"object"`
	Model  string      `json:"model"`
	Data   []embedding `json:"data"`
	Usage  embedUsage  `json:"usage"`
}

type embedding struct {
	Object string `json:"object"`
	Index  int    `json:"index"`
	Vector any    `json:"embedding"`
}

type embedUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

func (b *embedBody) check() error {
	switch {
	case b.Model == "":
		return server.Invalid("model", "model is missing: name one of those that /v1/models lists")
	case b.Format != "" && b.Format != "float" && b.Format != "base64":
		return wire.Errorf("encoding_format", "is %.40q; there are float and base64", b.Format)
	case b.Dimensions != nil && *b.Dimensions < 1:
		return wire.Errorf("dimensions", "is %d; it must be positive", *b.Dimensions)
	}
	return nil
}

func (a *api) embeddings(x *server.Exchange) error {
	var body embedBody
	if err := x.Body(&body); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	inputs, err := readPrompts(body.Input, "input")
	if err != nil {
		return err
	}
	m, err := x.Model(body.Model)
	if err != nil {
		return err
	}
	r := spillway.EmbedRequest{Priority: body.Priority}
	if d := body.Dimensions; d != nil {
		if *d > m.Layout().Hidden {
			return wire.Errorf("dimensions", "is %d; the model's vectors have %d", *d, m.Layout().Hidden)
		}
		r.Dimensions = *d
	}
	if err := x.Lease(int64(len(inputs))*int64(m.Layout().Hidden)*vectorBytes, "vectors"); err != nil {
		return err
	}
	out, err := embedAll(x, held{m}, inputs, r, body.Format)
	if err != nil {
		return err
	}
	return x.JSON(http.StatusOK, out)
}

// embedAll makes the vectors of all inputs. They share the model's steps.
func embedAll(x *server.Exchange, h held, inputs []prompt, r spillway.EmbedRequest, format string) (*embedAnswer, error) {
	out := &embedAnswer{Object: "list", Model: h.Name, Data: make([]embedding, len(inputs))}
	requests := make([]spillway.EmbedRequest, len(inputs))
	for i, p := range inputs {
		requests[i] = r
		requests[i].IDs, requests[i].Text = p.ids, p.text
		if err := x.PrepareEmbed(h.Held, &requests[i], textBytes([]byte(p.text))); err != nil {
			return nil, wire.Within(at("input", i, len(inputs)), err)
		}
		out.Usage.Prompt += len(requests[i].IDs)
	}
	out.Usage.Total = out.Usage.Prompt
	err := each(x, h, len(inputs), func(i int) error {
		v, _, err := x.Embed(h.Held, requests[i], 0)
		out.Data[i] = embedding{"embedding", i, written(v, format)}
		return err
	})
	return out, err
}

// written is a vector as the request wants it: numbers, or base64 of little-endian f32.
func written(v []float32, format string) any {
	if format != "base64" {
		return v
	}
	raw := make([]byte, 0, 4*len(v))
	for _, f := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
