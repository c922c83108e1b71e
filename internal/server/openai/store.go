package openai

import "github.com/spillway/spillway/internal/server"

type store struct{ s *server.Server }

func newStore(s *server.Server) *store { return &store{s} }

func (a *api) responses(x *server.Exchange) error  { return server.Invalid("", "no") }
func (a *api) stored(x *server.Exchange) error     { return server.Invalid("", "no") }
func (a *api) forget(x *server.Exchange) error     { return server.Invalid("", "no") }
func (a *api) inputItems(x *server.Exchange) error { return server.Invalid("", "no") }
