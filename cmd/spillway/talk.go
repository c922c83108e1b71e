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
	"github.com/spillway/spillway/internal/report"
)

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
}

// loop takes turns until the input ends.
func (c *conversation) loop() error {
	c.signals = make(chan os.Signal, 1)
	signal.Notify(c.signals, os.Interrupt)
	defer signal.Stop(c.signals)
	lines := c.openLines()
	if c.typed && !c.session.flags.Quiet {
		fmt.Fprintf(c.stderr, "%s — /help lists commands, Ctrl-D leaves\n", visible(c.o.Name(), 60))
	}
	for _, n := range notes(c.o.Checkpoint) {
		c.tell(n)
	}
	for {
		text, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return c.end()
		case errors.Is(err, errLongInput):
			c.refuse(err.Error())
			continue
		case err != nil:
			return errors.Join(err, c.end())
		}
		if done, err := c.turn(text); done || err != nil {
			return errors.Join(err, c.end())
		}
	}
}

// openLines reads from an editor if a person types, else line by line.
func (c *conversation) openLines() *lineReader {
	most := inputOf(c.m.Options().Context)
	if out, ok := c.stdout.(*os.File); ok && c.typed && !c.session.flags.JSON {
		if e := newEditor(c.stdin, out, most, c.loaded); e != nil {
			return &lineReader{e, most}
		}
	}
	return &lineReader{newPlainLines(c.stdin, most, c.signals, c.ask, func() {
		fmt.Fprintln(c.stderr, "\n(Ctrl-C again or Ctrl-D leaves)")
	}), most}
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
	line := strings.TrimSpace(text)
	switch {
	case line == "":
		return false, nil
	case strings.HasPrefix(line, "//"):
		return false, c.say(strings.Replace(text, "/", "", 1))
	case !strings.HasPrefix(line, "/"):
		return false, c.say(text)
	}
	name, rest := line, ""
	if i := strings.IndexAny(line, " \t\n"); i >= 0 {
		name, rest = line[:i], line[i:]
	}
	command, ok := findCommand(name)
	if !ok {
		fmt.Fprintf(c.stderr, "there is no command %s; /help lists them, // begins a text with a slash\n", visible(name, 40))
		return false, nil
	}
	if command.do == nil {
		return true, nil
	}
	return false, command.do(c, strings.TrimSpace(rest))
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
	r, err := c.flags.request(c.o)
	if err != nil {
		return err
	}
	r.Messages, r.Conversation, r.Clip = c.messages(), c.cache, true
	out := newStream(c.session, c.loaded)
	a, err := c.answer(r, out)
	err = errors.Join(err, out.end(a != nil))
	var long *spillway.TooLongError
	switch {
	case errors.As(err, &long):
		c.fail(c.tooLong(long))
		return nil
	case out.err != nil:
		return err
	case err != nil:
		c.fail(oneLine(err.Error()))
		return nil
	}
	c.keep(a)
	if context := c.m.Options().Context; a.FinishReason == spillway.FinishLength && r.MaxTokens == 0 && len(a.PromptIDs)+len(a.IDs) >= context {
		c.tell(fmt.Sprintf("answers are cut at the context's end, at %d tokens: /reset or /undo makes room, --context plans for more", context))
	}
	return nil
}

// keep adds an answer to the conversation; without one the question is taken back.
func (c *conversation) keep(a *spillway.Answer) {
	if len(a.IDs) == 0 {
		c.turns = c.turns[:len(c.turns)-1]
		fmt.Fprintln(c.stderr, "nothing was answered; the question is taken back")
		return
	}
	c.turns = append(c.turns, spillway.Message{Role: "assistant", Content: a.Content, Reasoning: a.Reasoning, ToolCalls: a.ToolCalls})
	c.count(a)
}

// tooLong says why a turn does not fit, and what would make it.
func (c *conversation) tooLong(long *spillway.TooLongError) string {
	what := fmt.Sprintf("the conversation has %s and its context %d", count(long.Prompt, "token"), long.Context)
	remedy := "--context plans for more"
	if long.Prompt < long.Context && long.MaxTokens > 0 {
		what += fmt.Sprintf(", which leaves no room for an answer of %d", long.MaxTokens)
		remedy = "raise --context or lower --max-tokens"
	}
	if len(c.turns) > 1 && c.flags.MaxTokens < long.Context {
		remedy = "/reset or /undo makes room, " + remedy
	}
	return what + ": " + remedy
}

// fail takes the last question back and says why.
func (c *conversation) fail(why string) {
	c.turns = c.turns[:len(c.turns)-1]
	c.refuse(why)
}

// refuse says why an input had no answer.
func (c *conversation) refuse(why string) {
	c.failed = append(c.failed, why)
	fmt.Fprintln(c.stderr, why)
}

// answer generates until the end or Ctrl-C.
func (c *conversation) answer(r spillway.Request, out *stream) (*spillway.Answer, error) {
	lease := &textLease{rt: c.o.rt, covered: c.text.covered}
	defer lease.release()
	texts := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		texts[i] = m.Content + m.Reasoning
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
	r.Read, r.Events = true, out.event
	a, err := c.m.Generate(ctx, r, nil)
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
		c.stats("")
	}
}

func (c *conversation) stats(string) error {
	if c.last == nil {
		fmt.Fprintln(c.stderr, "there is no answer yet")
		return nil
	}
	r := newReport(c.o, c.m, c.last)
	r.Notes, r.Memory = nil, memoryReport(c.o.rt, c.m.CurrentPlan())
	_, err := fmt.Fprint(c.stderr, r.Prose())
	return err
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
		append([]spillway.Message{}, c.messages()...), modelReport(c.o.Checkpoint), memoryReport(c.o.rt, c.m.CurrentPlan()), c.speed, c.failed,
	}), failed)
}
