package server

import (
	"net/http"
	"time"
)

// A writer gives every write a time of its own: a client that stops reading loses its answer, and nobody
// else does.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	full    *listener // nil: it never is
	status  int       // 0: nothing was written
	bytes   int64
	first   time.Time // when the first byte was written
	err     error     // of a write
}

func (w *writer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.first = time.Now()
		w.deadline()
		if w.full != nil && w.full.full() {
			w.Header().Set("Connection", "close")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) deadline() {
	if w.timeout > 0 {
		_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // a test's recorder has none
	}
}

func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.err != nil {
		return 0, w.err
	}
	w.deadline()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	w.err = err
	return n, err
}

// flush sends what was written.
func (w *writer) flush() error {
	if w.err == nil {
		w.deadline()
		w.err = w.control.Flush()
	}
	return w.err
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
