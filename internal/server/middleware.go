package server

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"
)

// done ends an exchange, whatever came of its handler, and logs it.
func (s *Server) done(x *Exchange) {
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler {
			x.leave()
			panic(p)
		}
		s.log.Error("a handler panicked", slog.String("request_id", x.ID), slog.Any("panic", p), slog.String("stack", short(string(debug.Stack()))))
		x.fail(&Error{Status: http.StatusInternalServerError, Code: CodeInternal, Message: "an internal error; the server's log has it under " + x.ID})
	}
	x.leave()
	s.access(x)
}

// access logs a request; those that watch the server only if they fail.
func (s *Server) access(x *Exchange) {
	level := slog.LevelInfo
	quiet := x.Request.URL.Path == "/health" || x.Request.URL.Path == "/ready" || x.Request.URL.Path == "/metrics"
	switch {
	case x.w.status >= http.StatusInternalServerError && !quiet:
		level = slog.LevelError
	case quiet:
		level = slog.LevelDebug
	}
	if !s.log.Enabled(x.ctx, level) {
		return
	}
	attrs := append([]slog.Attr{
		slog.String("request_id", x.ID), slog.String("method", x.Request.Method), slog.String("path", short(x.Request.URL.Path)),
		slog.Int("status", x.w.status), slog.Int64("bytes", x.w.bytes), slog.Duration("took", time.Since(x.Began).Round(time.Microsecond)),
		slog.String("remote", x.Request.RemoteAddr),
	}, x.notes...)
	s.log.LogAttrs(x.ctx, level, "request", attrs...)
}

// crossOrigin lets browsers of other origins in, if options say so. It reports whether the request was a
// question about that alone, which is answered.
func (s *Server) crossOrigin(x *Exchange) (answered bool) {
	origin := x.Request.Header.Get("Origin")
	allowed := s.options.CORSOrigins
	if origin == "" || len(allowed) == 0 {
		return false
	}
	h := x.w.Header()
	h.Add("Vary", "Origin")
	switch {
	case slices.Contains(allowed, "*"):
		h.Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(allowed, origin):
		h.Set("Access-Control-Allow-Origin", origin)
	default:
		return false
	}
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, "+NoticeHeader)
	if x.Request.Method != http.MethodOptions || x.Request.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	if asked := x.Request.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "3600")
	x.w.WriteHeader(http.StatusNoContent)
	return true
}
