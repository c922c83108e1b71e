package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Listen opens the server's port.
func (s *Server) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := listen(ctx, address, s.conns)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Serve answers the connections of a listener until ctx ends. Then it takes no more, waits for what runs as
// long as Options.DrainTimeout says, ends the rest, and returns nil; a second end is not waited for.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := s.httpServer(l)
	s.loopback.Store(isLoopback(l.Addr()))
	if s.certificate != nil {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*s.certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err := <-failed:
		s.end(errDrained)
		return err
	case <-ctx.Done():
	}
	return s.drain(h, failed)
}

func (s *Server) httpServer(l net.Listener) *http.Server {
	var only http.Protocols
	only.SetHTTP1(true) // a connection of HTTP/2 may hold far more than is leased for it
	h := &http.Server{
		Handler: s, Protocols: &only, ReadHeaderTimeout: s.options.ReadTimeout, IdleTimeout: s.options.IdleTimeout,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if own, ok := l.(*listener); ok {
		own.tls = s.certificate != nil
		s.full.Store(own)
		h.ConnState = own.becomes
		h.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	}
	return h
}

// connKey is where the context of a request has its connection.
type connKey struct{}

// grace is how long requests have to answer that they were ended.
const grace = 5 * time.Second

// drain ends the server in order.
func (s *Server) drain(h *http.Server, failed <-chan error) error {
	s.state.Store(stateDraining)
	s.log.Info("draining", slog.Duration("deadline", s.options.DrainTimeout))
	wait, cancel := context.WithTimeout(context.Background(), s.options.DrainTimeout)
	defer cancel()
	err := h.Shutdown(wait)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("the drain's deadline has passed; what still runs is ended")
		s.end(errDrained)
		last, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if err = h.Shutdown(last); err != nil {
			err = h.Close()
		}
	}
	s.end(errDrained)
	if serve := <-failed; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, serve)
	}
	return err
}

// Connections are those that are open, those that may be, and how many had to make room because they had no complete
// request while others waited.
func (s *Server) Connections() (open, most int, reclaimed int64) {
	if l := s.full.Load(); l != nil {
		return l.counts()
	}
	return 0, s.conns, 0
}
