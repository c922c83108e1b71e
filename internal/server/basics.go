package server

import (
	"net/http"
	"runtime"
)

// basics are the server's own paths.
func (s *Server) basics() {
	s.HandlePublic("GET /health", plainAPI, s.health)
	s.HandlePublic("GET /ready", plainAPI, s.health)
	s.HandlePublic("GET /version", plainAPI, func(x *Exchange) error {
		return x.JSON(http.StatusOK, struct {
			Version string `json:"version"`
			Go      string `json:"go"`
		}{s.options.Version, runtime.Version()})
	})
}

// health answers 200 while requests are taken.
func (s *Server) health(x *Exchange) error {
	status, text := http.StatusOK, "ok"
	switch s.state.Load() {
	case stateLoading:
		status, text = http.StatusServiceUnavailable, "loading"
	case stateDraining:
		status, text = http.StatusServiceUnavailable, "draining"
	}
	return x.JSON(status, struct {
		Status string `json:"status"`
	}{text})
}
