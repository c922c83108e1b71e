package server

import (
	"net/http"
	"strings"
)

// An API is a family of paths with one form of errors.
type API struct {
	Name   string
	Prefix string // of its paths; where several match the longest counts
	// Error is what is written as JSON for an error.
	Error func(e *Error) any
}

// A Handler answers a request. An error that it returns before anything was written becomes the answer, in
// the form of its API; later it is only logged.
type Handler func(x *Exchange) error

// plainAPI is that of the server's own paths, and of paths that nobody knows.
var plainAPI = &API{Name: "server", Prefix: "/", Error: PlainError}

// PlainError is an error as OpenAI has it.
func PlainError(e *Error) any {
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	b := body{Message: e.Message, Type: errorType(e.Status)}
	if e.Param != "" {
		b.Param = &e.Param
	}
	if code := string(e.Code); code != "" {
		b.Code = &code
	}
	return struct {
		Error body `json:"error"`
	}{b}
}

func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// apiOf is the API of a path.
func (s *Server) apiOf(path string) *API {
	best := plainAPI
	for _, a := range s.apis {
		if strings.HasPrefix(path, a.Prefix) && len(a.Prefix) > len(best.Prefix) {
			best = a
		}
	}
	return best
}

// Handle registers a handler for a pattern of http.ServeMux, such as "POST /v1/messages". Unless they are
// Public, paths are behind the API keys.
func (s *Server) Handle(pattern string, api *API, h Handler) {
	s.handle(pattern, api, h, false)
}

// HandlePublic is Handle without API keys.
func (s *Server) HandlePublic(pattern string, api *API, h Handler) {
	s.handle(pattern, api, h, true)
}

func (s *Server) handle(pattern string, api *API, h Handler, public bool) {
	s.apis = append(s.apis, api)
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r)
		x.api, x.pattern = api, pattern
		if !public || changes(r.Method) {
			if err := s.checkSite(r); err != nil {
				x.fail(err)
				return
			}
		}
		if !public {
			if err := s.keys.check(r); err != nil {
				x.fail(err)
				return
			}
		}
		if err := h(x); err != nil {
			x.fail(err)
		}
	})
}
