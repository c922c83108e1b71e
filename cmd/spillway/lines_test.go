package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const longestLine = 1 << 20

func pipedLines(text string, most int) *lineReader {
	return &lineReader{newPlainLines(strings.NewReader(text), most, nil, func(bool) {}, func() {}), most}
}

func TestLines(t *testing.T) {
	for text, want := range map[string][]string{
		"a\nb\n":                         {"a", "b"},
		"a\\\nb\nc":                      {"a\nb", "c"},
		"a\\":                            {"a"},
		"\"\"\"\na\n\n\"b\"\n\"\"\"\nc":  {"a\n\n\"b\"", "c"},
		"\"\"\"a\"\"\"\n":                {"a"},
		"\"\"\"a\nb":                     {"a\nb"},
		"\"\"\"\n/a\n/b\"\"\"\n/c\\\n/d": {"//a\n/b", "/c\n/d"},
		"":                               nil,
		"\r\n":                           {""},
	} {
		l := pipedLines(text, longestLine)
		var got []string
		for {
			s, err := l.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
	l := pipedLines(strings.Repeat("x", longestLine+1), longestLine)
	if _, err := l.next(); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a long line: %v", err)
	}
	l = pipedLines(quotes+strings.Repeat("line\n", 100), 64)
	if text, err := l.next(); err == nil || !strings.Contains(err.Error(), "an input is longer than 64 bytes") {
		t.Errorf("a long input of short lines: %d bytes, %v", len(text), err)
	}
}

// An interrupt drops what was typed; a second one in a row ends the conversation.
func TestLinesInterrupt(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	signals := make(chan os.Signal)
	asked := make(chan bool)
	warned := 0
	l := &lineReader{newPlainLines(r, longestLine, signals, func(more bool) { asked <- more }, func() { warned++ }), longestLine}
	type read struct {
		text string
		err  error
	}
	got := make(chan read)
	next := func() {
		text, err := l.next()
		got <- read{text, err}
	}
	go next()
	<-asked
	io.WriteString(w, "a\\\n")
	if more := <-asked; !more {
		t.Error("the second line of an input is asked for like a first one")
	}
	signals <- os.Interrupt
	if more := <-asked; more {
		t.Error("an interrupt does not drop what was typed")
	}
	io.WriteString(w, "b\n")
	if in := <-got; in.text != "b" || in.err != nil {
		t.Errorf("input %q, %v, want b", in.text, in.err)
	}
	go next()
	<-asked
	signals <- os.Interrupt
	<-asked
	signals <- os.Interrupt
	if in := <-got; !errors.Is(in.err, errInterrupted) {
		t.Errorf("after two interrupts: %q, %v", in.text, in.err)
	}
	if warned != 2 {
		t.Errorf("how to leave was said %d times, want 2", warned)
	}
}
