package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"syscall"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/pool"
)

// outcome notes whether the model gave its answer, and returns what a client is told of an error: where files are is
// for the log alone.
func (x *Exchange) outcome(h *pool.Held, err error) error {
	if err == nil {
		h.Worked()
		return nil
	}
	var beyond *spillway.CacheRangeError
	read, odd := isRead(err), errors.As(err, &beyond)
	if x.ctx.Err() != nil || !read && !odd {
		return err
	}
	changed := h.Changed()
	switch {
	case changed:
		h.Failed()
		return x.broken(h.Name, "the file of the model "+h.Name+" was written to while it was served, and its weights are not to be relied on", err)
	case read:
		h.Failed()
		return x.broken(h.Name, "the weights of the model "+h.Name+" could not be read", err)
	}
	return err
}

// isRead reports whether an error is one of reading a file.
func isRead(err error) bool {
	var number syscall.Errno
	var path *fs.PathError
	return errors.As(err, &number) || errors.As(err, &path) || errors.Is(err, io.ErrUnexpectedEOF)
}

// broken logs an error with all that it says, and returns one for the client.
func (x *Exchange) broken(model, what string, err error) error {
	x.Server.log.Error("a model failed", slog.String("request_id", x.ID), slog.String("model", model), slog.String("error", err.Error()))
	return &Error{Status: http.StatusInternalServerError, Code: CodeInternal, cause: err, Message: fmt.Sprintf("%s; the server's log says more under %.128s", what, x.ID)}
}

// loading is what a client is told of a model that could not be loaded.
func (x *Exchange) loading(name string, err error) error {
	if x.ctx.Err() != nil || classify(err).Status != http.StatusInternalServerError {
		return err
	}
	return x.broken(name, fmt.Sprintf("the model %.200s could not be loaded", name), err)
}
