package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/report"
)

type chatCommand struct {
	Model  string `arg:"" optional:"" help:"GGUF file, folder in Hugging Face layout, or known name. Default: the embedded Storyteller."`
	System string `help:"System message." placeholder:"TEXT"`
	predictionFlag
	samplingFlags
}

func (*chatCommand) Help() string {
	return "Type /help in the conversation for its commands. Ctrl-C stops an answer and keeps the conversation. In a pipe every line is a turn. " +
		"With --json the conversation is printed at the end: {messages, model, memory, speed}, and errors if turns failed.\n\n" +
		"Example:\n\n  spillway chat model.gguf --system \"Answer briefly.\" --memory 2GiB"
}

func (c *chatCommand) run(s *session) error {
	path := modelPath("")
	if c.Model != "" {
		var err error
		if path, err = s.resolve(c.Model); err != nil {
			return err
		}
	}
	ctx, stop := s.interruptible() // while the model loads
	defer stop()
	o, err := s.open(ctx, path)
	if err != nil {
		return s.interrupted(ctx, err)
	}
	text := newTextLease(o.rt)
	m, err := c.start(ctx, s, o, text)
	if err != nil {
		text.release()
		return s.interrupted(ctx, o.close(err))
	}
	stop()
	talk := &conversation{
		session: s, o: o, m: m, flags: &c.samplingFlags, system: c.System, cache: m.NewConversation(), text: text,
		loaded: s.watchLoading(o, m), typed: isTerminal(s.stdin),
	}
	err = talk.loop()
	talk.loaded()
	text.release()
	return o.close(errors.Join(err, talk.cache.Close(), m.Close()))
}

// start plans for the model's whole context, or as much as fits, and says so. The text of as long a
// conversation is leased beside it.
func (c *chatCommand) start(ctx context.Context, s *session, o *opened, text *textLease) (*spillway.Model, error) {
	if o.Embedding() {
		return nil, errVectors(o)
	}
	if _, err := c.samplingFlags.request(o); err != nil {
		return nil, err
	}
	if err := c.useTemplateOf(s, o); err != nil {
		return nil, err
	}
	s.tellTrained(o, max(s.flags.Context, c.MaxTokens))
	if n := s.flags.Context; n > 0 {
		m, err := c.startChat(ctx, s, o, text, n)
		return m, shorter(err, "context", n)
	}
	whole := o.Layout().Context
	n, err := fittingContext(o, whole, spillway.ModelOptions{Exact: s.flags.Exact, KV: s.flags.KV})
	if err != nil {
		return nil, err
	}
	m, err := c.startChat(ctx, s, o, text, n)
	for tries := 0; tries < 5 && noRoom(err) && n > contextStep; tries++ { // what was measured has moved
		n -= max(n/10, 1)
		m, err = c.startChat(ctx, s, o, text, n)
	}
	if err == nil && n < whole && !s.flags.Quiet {
		fmt.Fprintf(s.stderr, "context: %d of the model's %d tokens fit in %s\n", n, whole, report.Bytes(o.rt.Memory()))
	}
	return m, err
}

func (c *chatCommand) startChat(ctx context.Context, s *session, o *opened, text *textLease, n int) (*spillway.Model, error) {
	text.release()
	if err := text.grow(textOf(n)); err != nil {
		return nil, enough(err, text.cost(textOf(n)), fmt.Sprintf("the text of a conversation of %d tokens", n))
	}
	return s.start(ctx, o, spillway.ModelOptions{Context: n, Prediction: c.Prediction})
}

// textOf is about the bytes of a conversation that fills a context of n tokens.
func textOf(n int) int64 { return 4 * int64(n) }

// inputOf is the most bytes of one input in a context of n tokens.
func inputOf(n int) int { return min(max(2*freeText, 8*n), 1<<20) }

// noRoom reports whether an error is about too little memory.
func noRoom(err error) bool {
	var small *spillway.TooSmallError
	var full *budget.NoRoomError
	return errors.As(err, &small) || errors.As(err, &full)
}

// contextStep is what lengths of context are tried in.
const contextStep = 64

// fittingContext is the longest context up to whole that the memory holds; an error if not even a
// short one does.
func fittingContext(o *opened, whole int, options spillway.ModelOptions) (int, error) {
	const step = contextStep
	text := newTextLease(o.rt)
	try := func(n int) error {
		defer text.release()
		if err := text.grow(textOf(n)); err != nil {
			return err
		}
		options.Context = n
		_, err := o.Plan(options)
		return err
	}
	err := try(whole)
	if err == nil || !noRoom(err) {
		return whole, err
	}
	low, high := 0, (whole-1)/step // in steps: low fits, or is 0
	for low < high {
		mid := (low + high + 1) / 2
		if err = try(mid * step); err == nil {
			low = mid
		} else if high = mid - 1; !noRoom(err) {
			return 0, err
		}
	}
	if low == 0 {
		return 0, try(min(step, whole))
	}
	return low * step, nil
}
