package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spillway/spillway/internal/server/pool"
)

// An Exchange is a request and its answer. It belongs to the goroutine of its handler; a Stream of it may be
// used by several.
type Exchange struct {
	Request *http.Request
	Server  *Server
	ID      string // of the request, as it is logged and answered
	Began   time.Time

	w       *writer
	api     *API
	pattern string
	ctx     context.Context
	cancel  context.CancelCauseFunc
	notes   []slog.Attr
	leaving []func()         // in the reverse order
	holds   map[*purse]int64 // bytes

	connection net.Conn  // as net/http knows it; nil in some tests
	begun      time.Time // when the body was first waited for
	received   int64     // bytes of it
}

type exchangeKey struct{}

// exchangeOf is the exchange that ServeHTTP has put into a request's context.
func exchangeOf(r *http.Request) *Exchange {
	x := r.Context().Value(exchangeKey{}).(*Exchange)
	x.Request = r // with the path's values
	return x
}

// Context ends when the client leaves, the server has waited long enough, or Cancel was called.
func (x *Exchange) Context() context.Context { return x.ctx }

// Cancel ends what the exchange does.
func (x *Exchange) Cancel(cause error) { x.cancel(cause) }

// Writer is for what is neither JSON nor a stream.
func (x *Exchange) Writer() http.ResponseWriter { return x.w }

// Note adds to the line that the log will have of the request.
func (x *Exchange) Note(attrs ...slog.Attr) { x.notes = append(x.notes, attrs...) }

// Defer calls f when the exchange ends.
func (x *Exchange) Defer(f func()) { x.leaving = append(x.leaving, f) }

func (x *Exchange) leave() {
	for i := len(x.leaving) - 1; i >= 0; i-- {
		x.leaving[i]()
	}
	x.cancel(nil)
}

// Model returns a model, loaded, until the exchange ends.
func (x *Exchange) Model(name string) (*pool.Held, error) {
	h, err := x.Server.Models.Acquire(x.ctx, name)
	if err != nil {
		return nil, x.loading(name, err)
	}
	x.Note(slog.String("model", h.Name))
	x.Defer(h.Release)
	return h, nil
}

// JSON writes an answer.
func (x *Exchange) JSON(status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	x.w.WriteHeader(status)
	_, err = x.w.Write(append(body, '\n'))
	return err
}

// statusGone is the status of the log for a client that left.
const statusGone = 499

// fail answers with an error, unless an answer has begun.
func (x *Exchange) fail(err error) {
	e := ErrorOf(err)
	gone := errors.Is(err, context.Canceled) // what the request's context says of a client that left
	x.Note(slog.String("error", short(e.Message)))
	switch {
	case x.w.status != 0:
		return
	case gone:
		x.w.status = statusGone
		return
	case x.Server.draining() && errors.Is(err, errDrained):
		e = &Error{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, Message: errDrained.Error(), RetryAfter: busyAgain}
	}
	if e.RetryAfter > 0 {
		x.w.Header().Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	if e.Status == http.StatusUnauthorized {
		x.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if err := x.JSON(e.Status, x.api.Error(e)); err != nil {
		x.cancel(err)
	}
}

// short cuts what is logged.
func short(s string) string {
	const most = 300
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
