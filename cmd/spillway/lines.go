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

// A lineReader reads the inputs of a conversation: a line each, or several by \ at the end or
// between """.
type lineReader struct {
	lines  chan string
	failed error           // set before lines is closed
	prompt func(more bool) // shows that input is awaited; more: of an input that has begun
	warn   func()          // says how to leave, at an interrupt while nothing was computed
	most   int             // bytes of an input
	warned bool
}

func newLineReader(r io.Reader, most int, prompt func(more bool), warn func()) *lineReader {
	l := &lineReader{lines: make(chan string), prompt: prompt, warn: warn, most: most}
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

// next returns the next input, io.EOF at the end. An interrupt drops what has been typed; a second
// one in a row is errInterrupted.
func (l *lineReader) next(signals <-chan os.Signal) (string, error) {
	var parts []string
	quoted, size := false, 0
	for {
		line, err := l.line(signals, len(parts) > 0 || quoted)
		size += len(line) + 1
		switch {
		case err == nil && size > l.most+1:
			return "", fmt.Errorf("an input is longer than %d bytes", l.most)
		case errors.Is(err, errDropped):
			parts, quoted, size = nil, false, 0
			continue
		case errors.Is(err, io.EOF) && len(parts) > 0:
			return strings.Join(parts, "\n"), nil
		case err != nil:
			return "", err
		}
		if !quoted && len(parts) == 0 && strings.HasPrefix(line, quotes) {
			quoted, line = true, strings.TrimPrefix(line, quotes)
			if line == "" {
				continue
			}
		}
		if quoted {
			text, end := strings.CutSuffix(line, quotes)
			if parts = append(parts, text); end {
				return strings.TrimSuffix(strings.Join(parts, "\n"), "\n"), nil
			}
			continue
		}
		text, more := strings.CutSuffix(line, `\`)
		if parts = append(parts, text); !more {
			return strings.Join(parts, "\n"), nil
		}
	}
}

// errDropped is an interrupt that ends what was being typed.
var errDropped = errors.New("dropped")

func (l *lineReader) line(signals <-chan os.Signal, more bool) (string, error) {
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
	case <-signals:
		if l.warned && !more {
			return "", errInterrupted
		}
		l.warned = true
		l.warn()
		return "", errDropped
	}
}
