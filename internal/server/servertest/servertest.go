// Package servertest starts servers for tests: the embedded model on a small budget, on loopback.
package servertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/vfs"
)

// Memory is the budget of the servers here.
const Memory = 256 << 20

// A Server is one that runs until its test ends.
type Server struct {
	*server.Server
	URL    string
	Client *http.Client
	Stop   func() error // drains it; the end of the test calls it, too
	t      testing.TB
}

// Model is the name of the embedded model.
const Model = "storyteller"

// Options are what a test may want to change.
type Options struct {
	Memory int64 // 0: Memory
	Files  vfs.FS
	Server server.Options
	Pool   pool.Options
	Specs  []pool.Spec // the embedded model if there are none
	Mount  func(*server.Server) error
}

// Start starts a server with the embedded model loaded, and checks at the end that it gave back what it took.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	rt, err := spillway.New(spillway.Options{Memory: cmp.Or(o.Memory, Memory), Threads: 1, Files: o.Files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if used := rt.Ledger().Used; used != 0 {
			t.Errorf("%d bytes are still leased", used)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := server.New(rt, o.Server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if o.Specs == nil {
		o.Specs = []pool.Spec{{}}
	}
	if o.Pool.Model.Sequences == 0 {
		o.Pool.Model.Sequences, o.Pool.Model.Shared = 4, true
	}
	if s.Models, err = pool.New(t.Context(), rt, o.Specs, o.Pool); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Models.Close(); err != nil {
			t.Error(err)
		}
	})
	if o.Mount != nil {
		if err := o.Mount(s); err != nil {
			t.Fatal(err)
		}
	}
	scheme := "http"
	if o.Server.TLSCert != "" {
		scheme = "https"
	}
	return run(t, s, scheme)
}

func run(t testing.TB, s *server.Server, scheme string) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	l, err := s.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	if err := s.Models.Load(ctx, s.Models.Names()[0]); err != nil {
		t.Error(err)
	}
	s.Ready()
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	out := &Server{Server: s, URL: scheme + "://" + l.Addr().String(), Client: client, t: t}
	stopped := false
	out.Stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		client.CloseIdleConnections()
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := out.Stop(); err != nil {
			t.Error(err)
		}
	})
	return out
}

// Do sends a request and returns its status and body.
func (s *Server) Do(method, path, body string, headers ...string) (int, http.Header, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := s.Client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// Post sends JSON and decodes the answer, whose status must be as wanted.
func (s *Server) Post(path string, status int, body string, into any) {
	s.t.Helper()
	got, _, text := s.Do(http.MethodPost, path, body)
	if got != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", path, body, got, status, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
}

// An Event is a server-sent one.
type Event struct{ Name, Data string }

// Events sends JSON and returns the events of the stream that answers.
func (s *Server) Events(path, body string) []Event {
	s.t.Helper()
	status, header, text := s.Do(http.MethodPost, path, body)
	if status != http.StatusOK || header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("%s %s: status %d, %s: %s", path, body, status, header.Get("Content-Type"), text)
	}
	var all []Event
	for _, block := range strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var e Event
		for _, line := range bytes.Split([]byte(block), []byte("\n")) {
			if name, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
				e.Name = string(name)
			}
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				e.Data = string(data)
			}
		}
		if e.Data != "" {
			all = append(all, e)
		}
	}
	return all
}
