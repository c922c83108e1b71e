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
			return "", fmt.Errorf("an input is longer than %d bytes", l.most)
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
		return strings.TrimSuffix(text, "\n")
	}
	return text
}

// plainLines reads from a pipe, a file, or a terminal without an editor.
type plainLines struct {
	lines   chan string
	failed  error           // set before lines is closed
	prompt  func(more bool) // shows that input is awaited
	warn    func()          // says how to leave, at an interrupt while nothing was computed
	warned  bool
	signals <-chan os.Signal
}

func newPlainLines(r io.Reader, most int, signals <-chan os.Signal, prompt func(more bool), warn func()) *plainLines {
	l := &plainLines{lines: make(chan string), prompt: prompt, warn: warn, signals: signals}
	go func() {
		defer close(l.lines)
		s := bufio.NewScanner(r)
		s.Buffer(nil, most)
		for s.Scan() {
			l.lines <- s.Text()
		}
		if l.failed = s.Err(); errors.Is(l.failed, bufio.ErrTooLong) {
			l.failed = fmt.Errorf("a line is longer than %d bytes", most)
		}
	}()
	return l
}

// line returns the next line; a second interrupt in a row is errInterrupted.
func (l *plainLines) line(more bool) (string, error) {
	l.prompt(more)
	select {
	case line, ok := <-l.lines:
		l.warned = false
		if ok {
			return line, nil
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
