package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// stopSignals end a command in order: it removes what is half written, and reports if it can.
var stopSignals = map[os.Signal]error{os.Interrupt: errInterrupted, syscall.SIGTERM: errTerminated, syscall.SIGHUP: errHungUp}

// interruptible returns a context that the first of these signals cancels; the second one ends the
// process at once. Its cause says which one it was.
func (s *session) interruptible() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	signals := make(chan os.Signal, 1)
	for sig := range stopSignals {
		if !signal.Ignored(sig) { // as under nohup
			signal.Notify(signals, sig)
		}
	}
	go func() {
		select {
		case sig := <-signals:
			cancel(stopSignals[sig])
		case <-ctx.Done():
		}
		signal.Stop(signals)
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(context.Canceled)
	}
}

// stopped is the signal that has cancelled the context, as an error; nil if none has.
func stopped(ctx context.Context) error {
	for _, err := range stopSignals {
		if cause := context.Cause(ctx); errors.Is(cause, err) {
			return err
		}
	}
	return nil
}

// interrupted returns err, or the signal if err is there because one cancelled the context.
func (s *session) interrupted(ctx context.Context, err error) error {
	if sig := stopped(ctx); err != nil && sig != nil {
		return sig
	}
	return err
}

// atOnce runs what cannot be stopped midway and has nothing to clean up: a signal ends the wait for it.
func (s *session) atOnce(f func(ctx context.Context) error) error {
	ctx, stop := s.interruptible()
	defer stop()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		return s.interrupted(ctx, err)
	case <-ctx.Done():
		return s.interrupted(ctx, ctx.Err())
	}
}
