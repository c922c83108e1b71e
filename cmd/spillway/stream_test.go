package main

import (
	"strings"
	"testing"

	"github.com/spillway/spillway"
)

func TestStream(t *testing.T) {
	events := []spillway.Event{
		{Kind: spillway.EventReasoning, Text: "hm"}, {Kind: spillway.EventReasoning, Text: "m\n"},
		{Kind: spillway.EventContent, Text: "Hi"}, {Kind: spillway.EventContent, Text: "!"},
		{Kind: spillway.EventCallBegin, Name: "f"}, {Kind: spillway.EventCallArguments, Text: `{"a":`},
		{Kind: spillway.EventCallArguments, Text: ` 1}`}, {Kind: spillway.EventCallEnd},
	}
	const call = `{"name":"f","arguments":{"a":1}}` + "\n"
	for name, test := range map[string]struct {
		terminal, colour bool
		want             string
	}{
		"pipe":      {false, false, "Hi!\n" + call},
		"terminal":  {true, true, dim + "hmm\n" + undim + "\nHi!\n" + call},
		"no colour": {true, false, "hmm\n\nHi!\n" + call},
	} {
		var out strings.Builder
		s := &stream{w: &out, begin: func() {}, terminal: test.terminal, colour: test.colour}
		for _, e := range events {
			s.event(e)
		}
		if err := s.end(true); err != nil || out.String() != test.want {
			t.Errorf("%s: %q, %v, want %q", name, out.String(), err, test.want)
		}
	}
	// An answer that ends while it reasons leaves the terminal as it was.
	var out strings.Builder
	s := &stream{w: &out, begin: func() {}, terminal: true, colour: true}
	s.event(events[0])
	if err := s.end(true); err != nil || out.String() != dim+"hm"+undim+"\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
