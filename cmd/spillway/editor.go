package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// An editor reads lines from a terminal with editing keys, a history and pastes of several lines. The
// terminal is in raw mode only while a line is typed, so that Ctrl-C stops an answer as a signal.
type editor struct {
	in, out  *os.File
	keys     *pasteReader
	terminal *term.Terminal
	history  *history
	before   func() // is called before a prompt is shown
	warned   bool
}

// lineBreak stands for a line break in a line of the history.
const lineBreak = "↵"

// newEditor returns nil where there is no terminal to edit on.
func newEditor(in, out *os.File, most int, before func()) *editor {
	if !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	e := &editor{in: in, out: out, keys: &pasteReader{r: in, most: most}, history: new(history), before: before}
	e.terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e.keys, out}, "")
	e.terminal.History = e.history
	e.terminal.AutoCompleteCallback = completeCommand
	return e
}

func (e *editor) line(more bool) (string, error) {
	e.before()
	restore, err := e.raw()
	if err != nil {
		return "", fmt.Errorf("the terminal: %w", err)
	}
	defer restore()
	e.terminal.SetPrompt(map[bool]string{false: "> ", true: "… "}[more])
	e.keys.forget()
	e.keys.cooked = true
	typed, err := e.terminal.ReadLine()
	if err != nil {
		return "", e.ended(err, more)
	}
	e.warned = false
	text := e.keys.expand(typed)
	if !more && !strings.HasPrefix(strings.TrimSpace(typed), "/") {
		text = asText(text) // what was pasted is no command
	}
	e.history.add(text)
	return strings.ReplaceAll(text, lineBreak, "\n"), nil
}

// ended tells Ctrl-C, which the library reports as an end, from Ctrl-D.
func (e *editor) ended(err error, more bool) error {
	if !errors.Is(err, io.EOF) || !e.keys.interrupted {
		io.WriteString(e.out, "\r\n")
		return err
	}
	// The library keeps what was typed after Ctrl-C: begin anew.
	fresh := newEditor(e.in, e.out, e.keys.most, e.before)
	if fresh == nil {
		return io.EOF
	}
	fresh.history.lines = e.history.lines
	warned := e.warned
	*e = *fresh
	if warned && !more {
		io.WriteString(e.out, "\r\n")
		return errInterrupted
	}
	e.warned = true
	io.WriteString(e.out, "\r\n(Ctrl-C again or Ctrl-D leaves)\r\n")
	return errDropped
}

// raw puts the terminal into raw mode with bracketed paste. The function that it returns undoes that;
// so does a signal that ends the process.
func (e *editor) raw() (restore func(), err error) {
	state, err := term.MakeRaw(int(e.in.Fd()))
	if err != nil {
		return nil, err
	}
	if width, height, err := term.GetSize(int(e.out.Fd())); err == nil && width > 0 {
		e.terminal.SetSize(width, height)
	}
	io.WriteString(e.out, "\x1b[?2004h")
	undo := func() {
		io.WriteString(e.out, "\x1b[?2004l")
		term.Restore(int(e.in.Fd()), state)
	}
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	for sig := range stopSignals {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	go func() {
		select {
		case sig := <-signals:
			undo()
			os.Exit(exitCode(stopSignals[sig]))
		case <-done:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		undo()
	}, nil
}

// A history is what has been typed, the newest last. Up and down recall it; an input of several lines
// is one line there.
type history struct{ lines []string }

const maxHistory = 500

// Add is called by the editor for each line; add below does the work, with pastes in their place.
func (*history) Add(string) {}

func (h *history) Len() int { return len(h.lines) }

func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

// maxRecalled is the longest line that the editor can hold, in bytes to be safe.
const maxRecalled = 4000

func (h *history) add(text string) {
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", lineBreak)
	text = strings.ReplaceAll(text, "\t", "    ")
	if strings.TrimSpace(text) == "" || len(text) > maxRecalled || len(h.lines) > 0 && h.lines[len(h.lines)-1] == text {
		return
	}
	h.lines = append(h.lines, text)
	h.lines = h.lines[max(len(h.lines)-maxHistory, 0):]
}

// completeCommand completes a slash command, or the file that it names, at the tab key.
func completeCommand(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' || pos != len(line) || !strings.HasPrefix(line, "/") {
		return "", 0, false
	}
	for _, command := range []string{"/load ", "/save "} {
		if name, ok := strings.CutPrefix(line, command); ok {
			name = completeFile(name)
			return command + name, len(command + name), name != ""
		}
	}
	var found string
	for _, c := range chatCommands() {
		if strings.HasPrefix(c.name, line) {
			if found != "" {
				return "", 0, false
			}
			found = c.name + " "
		}
	}
	return found, len(found), found != ""
}

// completeFile adds what the names of all files that begin so have in common; "" if there are none.
func completeFile(name string) string {
	dir, base := filepath.Split(name)
	entries, err := os.ReadDir(cmp.Or(dir, "."))
	if err != nil {
		return ""
	}
	common, found := "", false
	for _, e := range entries {
		n := e.Name()
		if !strings.HasPrefix(n, base) || base == "" && strings.HasPrefix(n, ".") {
			continue
		}
		if e.IsDir() {
			n += string(filepath.Separator)
		}
		if !found {
			common, found = n, true
		}
		for !strings.HasPrefix(n, common) {
			_, size := utf8.DecodeLastRuneInString(common)
			common = common[:len(common)-size]
		}
	}
	if common == "" {
		return ""
	}
	return dir + common
}
