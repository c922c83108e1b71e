package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spillway/spillway"
)

// A stream prints an answer as it comes, unless JSON is wanted. Reasoning is shown on a terminal alone, dimmed;
// a call of a tool is a line of JSON.
type stream struct {
	w     io.Writer // nil: nothing is printed
	begin func()    // is called before the first text, maybe again
	last  byte      // of what was printed
	err   error

	terminal, colour bool
	reasoning        bool // is what was printed last
	call             printedCall
}

type printedCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

const (
	dim    = "\x1b[2m"
	undim  = "\x1b[0m"
	absent = 0
)

func newStream(s *session, begin func()) *stream {
	if s.flags.JSON {
		return &stream{begin: begin}
	}
	t := &stream{w: s.stdout, begin: begin}
	if f, ok := s.stdout.(*os.File); ok && isTerminal(f) {
		_, plain := s.getenv("NO_COLOR")
		t.terminal, t.colour = true, !plain
	}
	return t
}

// event prints a piece of the answer.
func (t *stream) event(e spillway.Event) {
	t.begin()
	switch e.Kind {
	case spillway.EventContent:
		t.answer(e.Text)
	case spillway.EventReasoning:
		t.think(e.Text)
	case spillway.EventCallBegin:
		t.call = printedCall{Name: e.Name}
	case spillway.EventCallArguments:
		t.call.Arguments = append(t.call.Arguments, e.Text...)
	case spillway.EventCallEnd:
		t.endCall()
	}
}

func (t *stream) answer(text string) {
	if t.reasoning {
		t.endReasoning()
	}
	t.print(text)
}

func (t *stream) think(text string) {
	if !t.terminal {
		return
	}
	if !t.reasoning {
		t.reasoning = true
		t.newLine()
		t.style(dim)
	}
	t.print(text)
}

// endReasoning leaves a blank line before the answer.
func (t *stream) endReasoning() {
	t.reasoning = false
	t.style(undim)
	t.newLine()
	t.print("\n")
}

func (t *stream) endCall() {
	line, err := json.Marshal(t.call)
	if err != nil { // the arguments are JSON, says the dialect
		t.err = err
		return
	}
	if t.reasoning {
		t.endReasoning()
	}
	t.newLine()
	t.print(string(line) + "\n")
}

func (t *stream) newLine() {
	if t.last != absent && t.last != '\n' {
		t.print("\n")
	}
}

func (t *stream) style(code string) {
	if t.colour && t.err == nil {
		_, t.err = io.WriteString(t.w, code)
	}
}

func (t *stream) print(text string) {
	if t.w == nil || t.err != nil || text == "" {
		return
	}
	_, t.err = io.WriteString(t.w, text)
	t.last = text[len(text)-1]
}

// end finishes the line of an answer, if there is one.
func (t *stream) end(answered bool) error {
	t.begin()
	if t.reasoning {
		t.reasoning = false
		t.style(undim)
	}
	if answered && t.last != '\n' {
		t.print("\n")
	}
	if t.err != nil {
		return fmt.Errorf("writing the answer: %w", t.err)
	}
	return nil
}
