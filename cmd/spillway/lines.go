package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const quotes = `"""`

// A lineSource gives the lines of a conversation; more says that they belong to an input that has begun.
// It returns io.EOF at the end, errDropped where an interrupt ends what was being typed, and
// errInterrupted where one ends the conversation.
type lineSource interface {
	line(more bool) (string, error)
}

// errDropped is an interrupt that ends what was being typed.
var errDropped = errors.New("dropped")

// A lineReader reads the inputs of a conversation: a line each, or several by \ at the end or
// between """.
type lineReader struct {
	source lineSource
	most   int // bytes of an input
}

// next returns the next input, io.EOF at the end. An interrupt drops what has been typed.
func (l *lineReader) next() (string, error) {
	var in input
	for size := 0; ; {
		line, err := l.source.line(in.begun())
		size += len(line) + 1
		switch {
		case err == nil && size > l.most+1:
			return "", l.skip(in, line)
		case errors.Is(err, errLongInput) && in.begun():
			return "", l.skip(in, "")
		case errors.Is(err, errDropped):
			in, size = input{}, 0
			continue
		case errors.Is(err, io.EOF) && len(in.parts) > 0:
			return strings.Join(in.parts, "\n"), nil
		case err != nil:
			return "", err
		}
		if in.add(line) {
			return in.text(), nil
		}
	}
}

// errLongInput is an input that is too long; the next one may do.
var errLongInput = errors.New("too long")

// skip drops the rest of an input that is too long.
func (l *lineReader) skip(in input, line string) error {
	for !in.add(line) {
		in.parts = nil
		if !in.quoted {
			in.parts = []string{""}
		}
		var err error
		if line, err = l.source.line(true); err != nil {
			break
		}
	}
	return longInput("an input", l.most)
}

func longInput(what string, most int) error {
	return &longInputError{fmt.Sprintf("%s is longer than %d bytes", what, most)}
}

type longInputError struct{ text string }

func (e *longInputError) Error() string        { return e.text }
func (e *longInputError) Is(target error) bool { return target == errLongInput }

// An input is what its lines have been so far.
type input struct {
	parts  []string
	quoted bool
}

func (in *input) begun() bool { return len(in.parts) > 0 || in.quoted }

// add takes the next line; true if it is the last one.
func (in *input) add(line string) (last bool) {
	if !in.begun() && strings.HasPrefix(line, quotes) {
		in.quoted, line = true, strings.TrimPrefix(line, quotes)
		if line == "" {
			return false
		}
	}
	end := `\`
	if in.quoted {
		end = quotes
	}
	text, found := strings.CutSuffix(line, end)
	in.parts = append(in.parts, text)
	return found == in.quoted
}

func (in *input) text() string {
	text := strings.Join(in.parts, "\n")
	if in.quoted {
		return asText(strings.TrimSuffix(text, "\n"))
	}
	return text
}

// asText makes an input of a text that is no command, whatever it begins with.
func asText(text string) string {
	rest := strings.TrimSpace(text)
	if !strings.HasPrefix(rest, "/") {
		return text
	}
	return strings.Replace(text, "/", "//", 1)
}

// plainLines reads from a pipe, a file, or a terminal without an editor.
type plainLines struct {
	lines   chan plainLine
	failed  error           // set before lines is closed
	prompt  func(more bool) // shows that input is awaited
	warn    func()          // says how to leave, at an interrupt while nothing was computed
	warned  bool
	most    int // bytes of a line
	signals <-chan os.Signal
}

func newPlainLines(r io.Reader, most int, signals <-chan os.Signal, prompt func(more bool), warn func()) *plainLines {
	l := &plainLines{lines: make(chan plainLine), prompt: prompt, warn: warn, most: most, signals: signals}
	go func() {
		defer close(l.lines)
		b := bufio.NewReader(r)
		for {
			line, tooLong, err := readBounded(b, most)
			if len(line) > 0 || tooLong {
				text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
				l.lines <- plainLine{text, tooLong}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					l.failed = err
				}
				return
			}
		}
	}()
	return l
}

// A plainLine is a line, or that it was too long.
type plainLine struct {
	text    string
	tooLong bool
}

// line returns the next line; a second interrupt in a row is errInterrupted.
func (l *plainLines) line(more bool) (string, error) {
	l.prompt(more)
	select {
	case line, ok := <-l.lines:
		l.warned = false
		switch {
		case ok && line.tooLong:
			return "", longInput("a line", l.most)
		case ok:
			return line.text, nil
		}
		if l.failed != nil {
			return "", l.failed
		}
		return "", io.EOF
	case <-l.signals:
		if l.warned && !more {
			return "", errInterrupted
		}
		l.warned = true
		l.warn()
		return "", errDropped
	}
}
