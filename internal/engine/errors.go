package engine

import (
	"fmt"
	"time"
)

// TooLongError says that a request needs more positions than the engine's context.
type TooLongError struct{ Prompt, MaxTokens, Context int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the prompt of %d tokens and %d more do not fit in a context of %d: raise --context or lower --max-tokens", e.Prompt, e.MaxTokens, e.Context)
}

// QueueFullError says that as many requests wait as may.
type QueueFullError struct {
	Running, Waiting int
	// RetryAfter is about how long it takes until one more is accepted.
	RetryAfter time.Duration
}

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("%d requests run and %d wait, as many as may: try again in %s", e.Running, e.Waiting, e.RetryAfter.Round(time.Second))
}

// DeadlineError says that a request's deadline passed before its answer was complete.
type DeadlineError struct {
	Deadline time.Time
	Tokens   int  // of the answer so far
	Waited   bool // the request has not run at all
}

func (e *DeadlineError) Error() string {
	if e.Waited {
		return "the request's deadline passed while it waited for a seat"
	}
	return fmt.Sprintf("the request's deadline passed after %d tokens of the answer", e.Tokens)
}

// Timeout marks the error as one of time.
func (e *DeadlineError) Timeout() bool { return true }
