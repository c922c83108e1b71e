package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/sample"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/wire"
)

// An Error is an answer that says what went wrong; each API writes it in a form of its own.
type Error struct {
	Status     int
	Code       Code
	Param      string // the field of the request that is wrong; empty: none
	Message    string
	RetryAfter time.Duration // 0: trying again does not help, or nobody knows when
	cause      error
}

// A Code tells programs what went wrong.
type Code string

// Codes of errors.
const (
	CodeInvalid     Code = "invalid_value"
	CodeNoModel     Code = "model_not_found"
	CodeTooLong     Code = "context_length_exceeded"
	CodeTooLarge    Code = "request_too_large"
	CodeBusy        Code = "rate_limit_exceeded"
	CodeKey         Code = "invalid_api_key"
	CodeForbidden   Code = "forbidden"
	CodeNotFound    Code = "not_found"
	CodeEncoding    Code = "unsupported_encoding"
	CodeMethod      Code = "method_not_allowed"
	CodeUnavailable Code = "unavailable"
	CodeTimeout     Code = "timeout"
	CodeInternal    Code = "internal_error"
)

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.cause }

// Invalid is a 400 about a field of the request; param may be empty.
func Invalid(param, message string) *Error {
	return &Error{Status: http.StatusBadRequest, Code: CodeInvalid, Param: param, Message: message}
}

// busyAgain is when to come again where nothing better is known.
const busyAgain = 5 * time.Second

// ErrorOf says what an error means to a client. What is nobody's fault but ours has Status 500.
func ErrorOf(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	e := classify(err)
	e.Message, e.cause = err.Error(), err
	return e
}

func classify(err error) *Error {
	var field *wire.FieldError
	var unknown *pool.UnknownError
	var inUse *pool.BusyError
	var long *spillway.TooLongError
	var queue *spillway.QueueFullError
	var deadline *spillway.DeadlineError
	var full *spillway.NoRoomError
	var small *spillway.TooSmallError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &field):
		return &Error{Status: http.StatusBadRequest, Code: CodeInvalid, Param: field.Path}
	case errors.As(err, &unknown):
		return &Error{Status: http.StatusNotFound, Code: CodeNoModel, Param: "model"}
	case errors.Is(err, sample.ErrForbidden):
		return &Error{Status: http.StatusBadRequest, Code: CodeInvalid}
	case errors.As(err, &long):
		return &Error{Status: http.StatusBadRequest, Code: CodeTooLong}
	case errors.As(err, &tooLarge):
		return &Error{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge}
	case errors.As(err, &queue):
		return &Error{Status: http.StatusTooManyRequests, Code: CodeBusy, RetryAfter: max(queue.RetryAfter, time.Second)}
	case errors.As(err, &inUse), errors.As(err, &full):
		return &Error{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, RetryAfter: busyAgain}
	case errors.As(err, &small), errors.Is(err, spillway.ErrClosed), errors.Is(err, errDrained):
		return &Error{Status: http.StatusServiceUnavailable, Code: CodeUnavailable}
	case errors.As(err, &deadline), errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusGatewayTimeout, Code: CodeTimeout}
	}
	return &Error{Status: http.StatusInternalServerError, Code: CodeInternal}
}
