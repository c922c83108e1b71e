package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// pause is how long a stream is silent before it shows that it lives.
const pause = 15 * time.Second

// A Stream is an answer that comes piece by piece. It begins with its first piece, so that a request that is
// refused before has an ordinary answer. A write that fails, or that the client does not take in time,
// cancels the exchange. It is safe for concurrent use.
type Stream struct {
	x    *Exchange
	kind string

	mu     sync.Mutex
	buf    bytes.Buffer
	json   *json.Encoder
	err    error
	closed bool
	alive  *time.Timer
	ping   func(s *Stream) // what is sent after a pause
}

// Events returns a stream of server-sent events. In a pause it sends comments.
func (x *Exchange) Events() *Stream {
	return x.stream("text/event-stream", func(s *Stream) { s.buf.WriteString(": waiting\n\n") })
}

// Lines returns a stream of JSON objects, one a line.
func (x *Exchange) Lines() *Stream { return x.stream("application/x-ndjson", nil) }

func (x *Exchange) stream(kind string, ping func(*Stream)) *Stream {
	s := &Stream{x: x, kind: kind, ping: ping}
	s.json = json.NewEncoder(&s.buf)
	s.json.SetEscapeHTML(false)
	if ping != nil {
		s.alive = time.AfterFunc(pause, s.beat)
	}
	x.Defer(s.close)
	return s
}

// Started reports whether something was sent.
func (s *Stream) Started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.x.w.status != 0
}

// Event sends a server-sent event with JSON as its data; an empty name is none.
func (s *Stream) Event(name string, v any) error {
	return s.send(func() error {
		if name != "" {
			s.buf.WriteString("event: ")
			s.buf.WriteString(name)
			s.buf.WriteByte('\n')
		}
		s.buf.WriteString("data: ")
		err := s.json.Encode(v) // ends the line
		s.buf.WriteByte('\n')
		return err
	})
}

// Data sends a server-sent event with a line of text as its data.
func (s *Stream) Data(text string) error {
	return s.send(func() error {
		s.buf.WriteString("data: ")
		s.buf.WriteString(text)
		s.buf.WriteString("\n\n")
		return nil
	})
}

// Line sends a line of JSON.
func (s *Stream) Line(v any) error {
	return s.send(func() error { return s.json.Encode(v) })
}

// SetPing replaces what is sent after a pause; f is called with the stream locked and returns an event's name
// and data.
func (s *Stream) SetPing(f func() (name string, v any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ping = func(s *Stream) {
		name, v := f()
		s.buf.WriteString("event: " + name + "\ndata: ")
		_ = s.json.Encode(v)
		s.buf.WriteByte('\n')
	}
}

func (s *Stream) send(fill func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.buf.Reset()
	if s.err = fill(); s.err == nil {
		s.err = s.flush()
	}
	if s.err != nil {
		s.x.cancel(s.err)
	}
	if s.alive != nil {
		s.alive.Reset(pause)
	}
	return s.err
}

// flush writes what the buffer holds. The lock is held.
func (s *Stream) flush() error {
	w := s.x.w
	if w.status == 0 {
		w.Header().Set("Content-Type", s.kind)
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
	}
	if _, err := w.Write(s.buf.Bytes()); err != nil {
		return err
	}
	return w.flush()
}

// beat sends a sign of life.
func (s *Stream) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return
	}
	s.buf.Reset()
	s.ping(s)
	if s.err = s.flush(); s.err != nil {
		s.x.cancel(s.err)
		return
	}
	s.alive.Reset(pause)
}

func (s *Stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.alive != nil {
		s.alive.Stop()
	}
}
