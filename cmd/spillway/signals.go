package main

import (
	"context"
	"os"
	"os/signal"
)

// interruptible returns a context that the first SIGINT cancels; the second one ends the process at
// once.
func (s *session) interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(s.ctx, os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// interrupted returns err, or errInterrupted if it is there because the context was cancelled.
func (s *session) interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && s.ctx.Err() == nil {
		return errInterrupted
	}
	return err
}
