package openai

import (
	"net/http"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/wire"
	"github.com/spillway/spillway/internal/tokenizer"
)

// tokenizeBody is the body of /tokenize: a prompt, or messages.
type tokenizeBody struct {
	Prompt  *string `json:"prompt"`
	Special *bool   `json:"add_special_tokens"`
	Strings bool    `json:"return_token_strs"`
	chatRequest
}

type tokenizeAnswer struct {
	Count   int      `json:"count"`
	Most    int      `json:"max_model_len"`
	Tokens  []int32  `json:"tokens"`
	Strings []string `json:"token_strs"`
}

// modelName is the model of a request that may leave it out: the first one.
func (a *api) modelName(name string) string {
	if name == "" {
		return a.s.Models.Names()[0]
	}
	return name
}

func (a *api) tokenize(x *server.Exchange) error {
	var body tokenizeBody
	if err := x.Body(&body); err != nil {
		return err
	}
	m, err := x.Model(a.modelName(body.Model))
	if err != nil {
		return err
	}
	ids, err := body.ids(x, held{m})
	if err != nil {
		return err
	}
	out := tokenizeAnswer{Count: len(ids), Most: m.Options().Context, Tokens: ids}
	if body.Strings {
		tok, err := m.Tokenizer()
		if err != nil {
			return err
		}
		for _, id := range ids {
			out.Strings = append(out.Strings, tok.Token(id))
		}
	}
	return x.JSON(http.StatusOK, out)
}

func (b *tokenizeBody) ids(x *server.Exchange, h held) ([]int32, error) {
	if b.Prompt != nil {
		tok, err := h.Tokenizer()
		if err != nil {
			return nil, err
		}
		o := tokenizer.Options{AddSpecial: b.Special == nil || *b.Special, ParseSpecial: true}
		return x.Encode(h.Held, textBytes([]byte(*b.Prompt)), func() ([]int32, error) { return tok.Encode([]int32{}, *b.Prompt, o) })
	}
	if b.Messages.Kind() == wire.Null {
		return nil, server.Invalid("prompt", "prompt is missing: give a prompt, or messages")
	}
	list, text, err := messages(b.Messages)
	if err != nil {
		return nil, err
	}
	tools, err := b.read()
	if err != nil {
		return nil, err
	}
	r := spillway.Request{Messages: list}
	tools.apply(&r)
	if err := b.template(&r); err != nil {
		return nil, err
	}
	return x.EncodeRequest(h.Held, r, text+textBytes(r.Tools), h.renderAny)
}

// detokenizeBody is the body of /detokenize.
type detokenizeBody struct {
	Model  string  `json:"model"`
	Tokens []int32 `json:"tokens"`
}

func (a *api) detokenize(x *server.Exchange) error {
	var body detokenizeBody
	if err := x.Body(&body); err != nil {
		return err
	}
	if body.Tokens == nil {
		return server.Invalid("tokens", "tokens is missing: give a list of ids")
	}
	m, err := x.Model(a.modelName(body.Model))
	if err != nil {
		return err
	}
	tok, err := m.Tokenizer()
	if err != nil {
		return err
	}
	text, err := tok.DecodeText(body.Tokens, false)
	if err != nil {
		return server.Invalid("tokens", err.Error())
	}
	return x.JSON(http.StatusOK, struct {
		Prompt string `json:"prompt"`
	}{text})
}
