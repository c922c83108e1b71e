package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/models"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/tokenizer"
)

// Exit codes, as scripts know them.
const (
	exitFine        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitMemory      = 3   // does not fit in the memory given
	exitFile        = 4   // damaged or not supported
	exitHungUp      = 129 // 128 + the signal's number, as shells have it
	exitInterrupted = 130
	exitTerminated  = 143
)

// A usageError is a wrong command line, environment or configuration file.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// A brokenError ended an answer midway, after what came of it was reported.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// These end a command that SIGINT, SIGTERM or SIGHUP stopped, after it has reported.
var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
	errHungUp      = errors.New("hung up")
)

// fail prints the error in one line and returns its exit code.
func (s *session) fail(err error) int {
	code := exitCode(err)
	if err != nil && code != exitInterrupted && code != exitTerminated && code != exitHungUp {
		fmt.Fprintf(s.stderr, "spillway: %s\n", oneLine(err.Error()))
	}
	return code
}

// oneLine joins the lines of a message: what a file or a library says must not pretend to be more
// than one error.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// exitCode sorts an error by whose fault it is.
func exitCode(err error) int {
	var usage usageError
	var broken *brokenError
	var damaged *checkpoint.FormatError
	var config *models.ConfigError
	var missing *nn.MissingError
	var unsupported *tokenizer.UnsupportedError
	var small *spillway.TooSmallError
	var full *budget.NoRoomError
	var long *spillway.TooLongError
	var cache *spillway.CacheTypeError
	var grammar grammarError
	var form *spillway.FormError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, errTerminated):
		return exitTerminated
	case errors.Is(err, errHungUp):
		return exitHungUp
	case errors.As(err, &broken):
		return exitFailed
	case errors.As(err, &usage), errors.As(err, &long), errors.As(err, &cache):
		return exitUsage
	case errors.As(err, &small), errors.As(err, &full):
		return exitMemory
	case errors.As(err, &damaged), errors.As(err, &config), errors.As(err, &missing), errors.As(err, &unsupported),
		errors.As(err, &grammar), errors.As(err, &form):
		return exitFile
	}
	return exitFailed
}
