package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/report"
)

type chatCommand struct {
	Model  string `arg:"" optional:"" help:"GGUF file, folder in Hugging Face layout, or known name. Default: the embedded Storyteller."`
	System string `help:"System message." placeholder:"TEXT"`
	samplingFlags
}

func (*chatCommand) Help() string {
	return "Type /help in the conversation for its commands. Ctrl-C stops an answer and keeps the conversation. In a pipe every line is a turn. " +
		"With --json the conversation is printed at the end: {messages, model, memory, speed}, and errors if turns failed.\n\n" +
		"Example:\n\n  spillway chat model.gguf --system \"Answer briefly.\" --memory 2GiB"
}

const chatHelp = `/help           this text
/reset          forget the conversation
/system [TEXT]  set the system message, or remove it, and forget the conversation
/undo           forget the last question and its answer
/stats          what the last answer cost
/exit           leave (Ctrl-D too)
A line that ends in \ goes on in the next one; """ begins and ends a text of several lines.
`

// A conversation is a chat that runs.
type conversation struct {
	*session
	o       *opened
	m       *spillway.Model
	flags   *samplingFlags
	system  string
	turns   []spillway.Message // without the system message
	cache   *spillway.Conversation
	last    *spillway.Answer
	speed   report.Speed
	text    *textLease // of the conversation
	loaded  func()     // ends the bar that shows how weights are read
	typed   bool       // by a person
	failed  []string   // why turns have failed
	signals chan os.Signal
	lines   *lineReader
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
	if _, err := c.samplingFlags.request(o.Defaults()); err != nil {
		return nil, err
	}
	if n := s.flags.Context; n > 0 {
		return s.startChat(ctx, o, text, n)
	}
	whole := o.Layout().Context
	n, err := fittingContext(o, whole, s.flags.Exact)
	if err != nil {
		return nil, err
	}
	m, err := s.startChat(ctx, o, text, n)
	for tries := 0; tries < 5 && noRoom(err) && n > contextStep; tries++ { // what was measured has moved
		n -= max(n/10, 1)
		m, err = s.startChat(ctx, o, text, n)
	}
	if err == nil && n < whole && !s.flags.Quiet {
		fmt.Fprintf(s.stderr, "context: %d of the model's %d tokens fit in %s\n", n, whole, report.Bytes(o.rt.Memory()))
	}
	return m, err
}

func (s *session) startChat(ctx context.Context, o *opened, text *textLease, n int) (*spillway.Model, error) {
	text.release()
	if err := text.grow(textOf(n)); err != nil {
		return nil, enough(err, text.cost(textOf(n)), fmt.Sprintf("the text of a conversation of %d tokens", n))
	}
	return s.start(ctx, o, spillway.ModelOptions{Context: n})
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
func fittingContext(o *opened, whole int, exact bool) (int, error) {
	const step = contextStep
	text := newTextLease(o.rt)
	try := func(n int) error {
		defer text.release()
		if err := text.grow(textOf(n)); err != nil {
			return err
		}
		_, err := o.Plan(spillway.ModelOptions{Context: n, Exact: exact})
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

// loop takes turns until the input ends.
func (c *conversation) loop() error {
	c.signals = make(chan os.Signal, 1)
	signal.Notify(c.signals, os.Interrupt)
	defer signal.Stop(c.signals)
	c.lines = newLineReader(c.stdin, inputOf(c.m.Options().Context), c.ask, func() {
		fmt.Fprintln(c.stderr, "\n(Ctrl-C again or Ctrl-D leaves)")
	})
	if c.typed && !c.session.flags.Quiet {
		fmt.Fprintf(c.stderr, "%s — /help lists commands, Ctrl-D leaves\n", visible(c.o.Name(), 60))
	}
	for _, n := range notes(c.o.Checkpoint) {
		c.tell(n)
	}
	for {
		text, err := c.lines.next(c.signals)
		switch {
		case errors.Is(err, io.EOF):
			return c.end()
		case err != nil:
			return errors.Join(err, c.end())
		}
		if done, err := c.turn(text); done || err != nil {
			return errors.Join(err, c.end())
		}
	}
}

// ask shows that an input is awaited, or its next line.
func (c *conversation) ask(more bool) {
	if c.typed && !c.session.flags.JSON {
		c.loaded()
		fmt.Fprint(c.stdout, map[bool]string{false: "> ", true: "… "}[more])
	}
}

// turn does what one input says; done ends the conversation.
func (c *conversation) turn(text string) (done bool, err error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch {
	case name == "":
		return false, nil
	case !strings.HasPrefix(name, "/"):
		return false, c.say(text)
	}
	switch name {
	case "/exit", "/quit", "/bye":
		return true, nil
	case "/help":
		_, err = io.WriteString(c.stderr, chatHelp)
	case "/reset":
		c.turns = nil
	case "/system":
		c.system, c.turns = strings.TrimSpace(rest), nil
	case "/undo":
		c.turns = c.turns[:max(len(c.turns)-2, 0)]
	case "/stats":
		c.stats()
	default:
		fmt.Fprintf(c.stderr, "there is no command %s; /help lists them\n", visible(name, 40))
	}
	return false, err
}

// messages is the whole conversation.
func (c *conversation) messages() []spillway.Message {
	if c.system == "" {
		return c.turns
	}
	return append([]spillway.Message{{Role: "system", Content: c.system}}, c.turns...)
}

// say asks the model and prints its answer. What goes wrong with one answer does not end the
// conversation.
func (c *conversation) say(text string) error {
	c.turns = append(c.turns, spillway.Message{Role: "user", Content: text})
	r, err := c.flags.request(c.o.Defaults())
	if err != nil {
		return err
	}
	r.Messages, r.Conversation = c.messages(), c.cache
	out := newStream(c.session, c.loaded)
	a, err := c.answer(r, out)
	err = errors.Join(err, out.end(a != nil))
	var long *spillway.TooLongError
	switch {
	case errors.As(err, &long):
		c.fail(fmt.Sprintf("the conversation has %d tokens and its context %d: /reset or /undo makes room, --context plans for more", long.Prompt, long.Context))
		return nil
	case out.err != nil:
		return err
	case err != nil:
		c.fail(oneLine(err.Error()))
		return nil
	}
	c.turns = append(c.turns, spillway.Message{Role: "assistant", Content: a.Text})
	c.count(a)
	return nil
}

// fail takes the last question back and says why.
func (c *conversation) fail(why string) {
	c.turns = c.turns[:len(c.turns)-1]
	c.failed = append(c.failed, why)
	fmt.Fprintln(c.stderr, why)
}

// answer generates until the end or Ctrl-C.
func (c *conversation) answer(r spillway.Request, out *stream) (*spillway.Answer, error) {
	lease := &textLease{rt: c.o.rt, covered: c.text.covered}
	defer lease.release()
	texts := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		texts[i] = m.Content
	}
	if err := lease.growFor(texts...); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	a, err := c.m.Generate(ctx, r, out.emit)
	cancel()
	<-watched
	return a, err
}

func (c *conversation) count(a *spillway.Answer) {
	c.last = a
	c.speed.PrefillTokens += len(a.PromptIDs) - a.CachedTokens
	c.speed.PrefillSeconds += a.Prefill.Seconds()
	c.speed.DecodeTokens += max(len(a.IDs)-1, 0)
	c.speed.DecodeSeconds += a.Decode.Seconds()
	if c.session.flags.Verbose {
		c.stats()
	}
}

func (c *conversation) stats() {
	if c.last == nil {
		fmt.Fprintln(c.stderr, "there is no answer yet")
		return
	}
	r := newReport(c.o, c.m, c.last)
	r.Notes, r.Memory = nil, memoryReport(c.o.rt, c.m.CurrentPlan())
	fmt.Fprint(c.stderr, r.Prose())
}

// chatResult is what `spillway chat --json` prints at the end.
type chatResult struct {
	Messages []spillway.Message `json:"messages"`
	Model    report.Model       `json:"model"`
	Memory   report.Memory      `json:"memory"`
	Speed    report.Speed       `json:"speed"`
	Errors   []string           `json:"errors,omitempty"` // of turns that failed, which are not among the messages
}

func (c *conversation) end() error {
	var failed error
	if len(c.failed) > 0 && !c.typed {
		failed = fmt.Errorf("%s failed", count(len(c.failed), "turn"))
	}
	if !c.session.flags.JSON {
		return failed
	}
	c.speed.LoadSeconds = c.m.LoadTime().Seconds()
	return errors.Join(c.printJSON(chatResult{
		c.messages(), modelReport(c.o.Checkpoint), memoryReport(c.o.rt, c.m.CurrentPlan()), c.speed, c.failed,
	}), failed)
}
