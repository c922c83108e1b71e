package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/pool"
)

// Options shape a Server. Zero values are those of DefaultOptions where they make no sense themselves.
type Options struct {
	Keys         []string // API keys; none: everybody may come
	CORSOrigins  []string // that browsers may call from; "*" is all
	Host         string   // that the server was told to listen on; a name that clients may use
	AllowedHosts []string // further names that they may use; with some, others are refused on every address
	BodyLimit    int64    // bytes of a request's body
	Connections  int      // at a time at most
	Serial       int      // prompts that are rendered and encoded at a time
	ReadTimeout  time.Duration
	WriteTimeout time.Duration // of one write
	IdleTimeout  time.Duration // of a connection between requests
	DrainTimeout time.Duration // how long requests may go on once the server is told to stop
	TLSCert      string        // files; empty: no TLS
	TLSKey       string
	Version      string // of the program
	Dialects     spillway.Dialects
	Log          *slog.Logger
	Observer     Observer // nil: nobody
}

// DefaultOptions are what Options mean where they say nothing.
func DefaultOptions() Options {
	return Options{
		BodyLimit: 32 << 20, Connections: 128, Serial: 2, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, DrainTimeout: 30 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	for _, f := range []struct{ to, from *time.Duration }{
		{&o.ReadTimeout, &d.ReadTimeout}, {&o.WriteTimeout, &d.WriteTimeout}, {&o.IdleTimeout, &d.IdleTimeout}, {&o.DrainTimeout, &d.DrainTimeout},
	} {
		if *f.to <= 0 {
			*f.to = *f.from
		}
	}
	if o.BodyLimit <= 0 {
		o.BodyLimit = d.BodyLimit
	}
	if o.Connections <= 0 {
		o.Connections = d.Connections
	}
	if o.Serial <= 0 {
		o.Serial = d.Serial
	}
	if o.Log == nil {
		o.Log = d.Log
	}
	return o
}

// A Server answers requests with the models of a pool. It is an http.Handler.
type Server struct {
	Models *pool.Pool // set by Serve's caller before requests come

	rt      *spillway.Runtime
	options Options
	log     *slog.Logger
	mux     *http.ServeMux
	apis    []*API
	keys    keys
	began   time.Time

	conns   int             // at a time at most, as memory is leased for
	bodies  *purse          // for bodies of requests
	prompts *purse          // for prompts until they are ids
	answers *purse          // for long answers, several at once, and probabilities
	lent    atomic.Int64    // beyond the purses, to requests
	encode  chan struct{}   // those that render or encode now
	base    context.Context // of all exchanges
	end     context.CancelCauseFunc
	state   atomic.Int32 // what a stateXxx says
	full    atomic.Pointer[listener]
	leases  []func() // that Close gives back

	certificate *tls.Certificate // nil: no TLS
	loopback    atomic.Bool      // only this machine reaches the listener
}

// What a server does now.
const (
	stateLoading int32 = iota
	stateReady
	stateDraining
)

// New leases the server's memory: make it before models are loaded, which take what they find. Close gives
// it back.
func New(rt *spillway.Runtime, o Options) (*Server, error) {
	o = o.withDefaults()
	s := &Server{rt: rt, options: o, log: o.Log, mux: http.NewServeMux(), keys: newKeys(o.Keys), began: time.Now()}
	s.base, s.end = context.WithCancelCause(context.Background())
	s.encode = make(chan struct{}, o.Serial)
	if o.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		s.certificate = &pair
	}
	if err := s.leaseAhead(); err != nil {
		s.Close()
		return nil, fmt.Errorf("the server's own memory: %w", err)
	}
	s.basics()
	return s, nil
}

// Close gives back the server's memory.
func (s *Server) Close() {
	s.end(errDrained)
	for _, p := range []*purse{s.bodies, s.prompts, s.answers} {
		if p != nil {
			p.release()
		}
	}
	for _, release := range s.leases {
		release()
	}
}

// Reserve leases memory for what an API keeps on the heap, until the server closes.
func (s *Server) Reserve(n int64, what string) error {
	release, err := s.rt.Reserve(n, what)
	if err == nil {
		s.leases = append(s.leases, release)
	}
	return err
}

// Runtime is what the models run on.
func (s *Server) Runtime() *spillway.Runtime { return s.rt }

// Log is the server's log.
func (s *Server) Log() *slog.Logger { return s.log }

// Version is the program's version.
func (s *Server) Version() string { return s.options.Version }

// Began is when the server was made.
func (s *Server) Began() time.Time { return s.began }

// Ready makes /health and /ready say that requests are taken.
func (s *Server) Ready() { s.state.CompareAndSwap(stateLoading, stateReady) }

func (s *Server) draining() bool { return s.state.Load() == stateDraining }

// errDrained ends what is not done when the server stops.
var errDrained = errors.New("the server is stopping")

// ServeHTTP is part of http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := s.exchange(w, r)
	defer s.done(x)
	r = r.WithContext(context.WithValue(x.ctx, exchangeKey{}, x))
	x.Request = r
	x.w.Header().Set("X-Request-Id", x.ID)
	if s.crossOrigin(x) {
		return
	}
	handler, pattern := s.mux.Handler(r)
	if pattern == "" {
		s.unknown(x, handler)
		return
	}
	s.mux.ServeHTTP(x.w, r)
}

func (s *Server) exchange(w http.ResponseWriter, r *http.Request) *Exchange {
	x := &Exchange{Request: r, Server: s, ID: r.Header.Get("X-Request-Id"), Began: time.Now(), api: s.apiOf(r.URL.Path)}
	if x.ID == "" || len(x.ID) > 128 {
		x.ID = NewID("req-")
	}
	x.w = &writer{ResponseWriter: w, control: http.NewResponseController(w), timeout: s.options.WriteTimeout, full: s.full.Load()}
	x.connection, _ = r.Context().Value(connKey{}).(net.Conn)
	x.expectBody()
	x.ctx, x.cancel = context.WithCancelCause(r.Context())
	stop := context.AfterFunc(s.base, func() { x.cancel(context.Cause(s.base)) })
	x.Defer(func() { stop() })
	return x
}

// unknown answers where the mux has no pattern: 404, or 405 with what is allowed.
func (s *Server) unknown(x *Exchange, handler http.Handler) {
	probe := &probe{header: http.Header{}}
	handler.ServeHTTP(probe, x.Request)
	switch {
	case probe.status == http.StatusMethodNotAllowed:
		allow := probe.header.Get("Allow")
		x.w.Header().Set("Allow", allow)
		x.fail(&Error{Status: probe.status, Code: CodeMethod, Message: fmt.Sprintf("%s %.200s is not possible; there is %s", x.Request.Method, x.Request.URL.Path, allow)})
	case probe.header.Get("Location") != "":
		handler.ServeHTTP(x.w, x.Request) // a path that is not clean
	default:
		x.fail(&Error{Status: http.StatusNotFound, Code: CodeNotFound, Message: fmt.Sprintf("there is no %s %.200s", x.Request.Method, x.Request.URL.Path)})
	}
}

// A probe sees what a handler would answer.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

// NewID returns an id that nobody has guessed.
func NewID(prefix string) string { return prefix + rand.Text() }
