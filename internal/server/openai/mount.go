// Package openai is OpenAI's HTTP API, with what vLLM adds to it: models, chat completions, completions,
// responses, embeddings, tokenize and detokenize.
package openai

import (
	"net/http"

	"github.com/spillway/spillway/internal/server"
)

// api is the state of the package's paths.
type api struct {
	s     *server.Server
	store *store
}

var family = &server.API{Name: "openai", Prefix: "/v1/", Error: server.PlainError}

// Mount registers the API's paths, and leases what is stored of responses.
func Mount(s *server.Server) error {
	stored, err := newStore(s)
	if err != nil {
		return err
	}
	a := &api{s: s, store: stored}
	handle := func(pattern string, h server.Handler) { s.Handle(pattern, family, h) }
	handle("GET /v1/models", a.models)
	handle("GET /v1/models/{id...}", a.model)
	handle("POST /v1/chat/completions", a.chat)
	handle("POST /v1/completions", a.completions)
	handle("POST /v1/embeddings", a.embeddings)
	handle("POST /v1/responses", a.responses)
	handle("GET /v1/responses/{id}", a.stored)
	handle("DELETE /v1/responses/{id}", a.forget)
	handle("GET /v1/responses/{id}/input_items", a.inputItems)
	handle("POST /v1/tokenize", a.tokenize)
	handle("POST /v1/detokenize", a.detokenize)
	handle("POST /tokenize", a.tokenize)
	handle("POST /detokenize", a.detokenize)
	return nil
}

// modelObject is a model as OpenAI lists it.
type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Root    string `json:"root"`
	Length  int    `json:"max_model_len"` // tokens; of a model that is not loaded, as it was trained
}

func (a *api) models(x *server.Exchange) error {
	list := struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{Object: "list"}
	for _, m := range a.s.Models.List() {
		list.Data = append(list.Data, objectOf(m))
	}
	return x.JSON(http.StatusOK, list)
}

func (a *api) model(x *server.Exchange) error {
	m, err := a.s.Models.Find(x.Request.PathValue("id"))
	if err != nil {
		return err
	}
	return x.JSON(http.StatusOK, objectOf(m))
}
