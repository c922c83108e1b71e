package server

import (
	"net/http"
	"runtime"
)

// basics are the server's own paths.
func (s *Server) basics() {
	s.HandlePublic("GET /health", plainAPI, s.health)
	s.HandlePublic("GET /ready", plainAPI, s.ready)
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

// ready is health, and 503 while a model cannot be relied on.
func (s *Server) ready(x *Exchange) error {
	if s.state.Load() != stateReady {
		return s.health(x)
	}
	broken := s.Models.Broken()
	if len(broken) == 0 {
		return s.health(x)
	}
	return x.JSON(http.StatusServiceUnavailable, struct {
		Status string            `json:"status"`
		Models map[string]string `json:"models"`
	}{"broken", broken})
}
