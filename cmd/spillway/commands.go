package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spillway/spillway"
)

// A chatCommandLine is what a line that begins with a slash does in a conversation; a nil function leaves.
type chatCommandLine struct {
	name, argument, help string
	do                   func(c *conversation, argument string) error
	aliases              []string
}

func chatCommands() []chatCommandLine {
	return []chatCommandLine{
		{name: "/help", help: "this text", do: (*conversation).help},
		{name: "/reset", help: "forget the conversation", do: (*conversation).reset},
		{name: "/system", argument: "[TEXT]", help: "set the system message and forget the conversation; - removes it, without TEXT it is shown", do: (*conversation).setSystem},
		{name: "/undo", help: "forget the last question and its answer", do: (*conversation).undo},
		{name: "/save", argument: "FILE", help: "write the conversation to a file", do: (*conversation).save},
		{name: "/load", argument: "FILE", help: "go on with a conversation from a file", do: (*conversation).load},
		{name: "/tokens", argument: "[TEXT]", help: "how full the context is, or the tokens of a text", do: (*conversation).tokens},
		{name: "/stats", help: "what the last answer cost", do: (*conversation).stats},
		{name: "/exit", help: "leave (/quit, /bye and Ctrl-D too)", aliases: []string{"/quit", "/bye"}},
	}
}

const chatKeys = `A line that begins with // is a text that begins with one slash. A line that ends in \ goes on in the
next one; """ begins and ends a text of several lines; what is pasted is one input, and no command.
Up and down recall what was typed in this session, with ↵ for a line break.
`

func findCommand(name string) (chatCommandLine, bool) {
	all := chatCommands()
	i := slices.IndexFunc(all, func(c chatCommandLine) bool { return c.name == name || slices.Contains(c.aliases, name) })
	if i < 0 {
		return chatCommandLine{}, false
	}
	return all[i], true
}

func (c *conversation) help(string) error {
	var text strings.Builder
	for _, l := range chatCommands() {
		fmt.Fprintf(&text, "%-16s %s\n", strings.TrimSpace(l.name+" "+l.argument), l.help)
	}
	_, err := fmt.Fprint(c.stderr, text.String()+chatKeys)
	return err
}

func (c *conversation) reset(string) error {
	c.turns = nil
	c.confirm("the conversation is forgotten")
	return nil
}

// confirm says to a person that a command did what it should.
func (c *conversation) confirm(what string) {
	if c.typed && !c.session.flags.Quiet {
		fmt.Fprintln(c.stderr, what)
	}
}

func (c *conversation) setSystem(text string) error {
	switch {
	case text == "" && c.system == "":
		fmt.Fprintln(c.stderr, "there is no system message")
	case text == "":
		fmt.Fprintf(c.stderr, "the system message: %s\n", visible(c.system, 10000))
	case text == "-":
		c.system, c.turns = "", nil
		c.confirm("the system message is removed, the conversation forgotten")
	default:
		c.system, c.turns = text, nil
		c.confirm("the system message is set, the conversation forgotten")
	}
	return nil
}

func (c *conversation) undo(string) error {
	if len(c.turns) == 0 {
		fmt.Fprintln(c.stderr, "there is nothing to undo")
		return nil
	}
	for n := len(c.turns) - 1; n >= 0; n-- { // a loaded conversation may have tool messages between
		role := c.turns[n].Role
		c.turns = c.turns[:n]
		if role == "user" {
			break
		}
	}
	c.confirm("the last question and its answer are forgotten")
	return nil
}

// tokens says how full the context is, or what a text is cut into.
func (c *conversation) tokens(text string) error {
	if text != "" {
		return c.tokensOf(text)
	}
	used := 0
	if len(c.messages()) > 0 {
		ids, err := c.o.Tokens(spillway.Request{Messages: c.messages()})
		if err != nil {
			fmt.Fprintln(c.stderr, oneLine(err.Error()))
			return nil
		}
		used = len(ids)
	}
	context := c.m.Options().Context
	fmt.Fprintf(c.stderr, "the conversation has %s; the context has room for %d, %d are left\n", count(used, "token"), context, max(context-used, 0))
	if c.last != nil {
		fmt.Fprintf(c.stderr, "the last answer: %d of prompt (%d of them cached), %d generated\n", len(c.last.PromptIDs), c.last.CachedTokens, len(c.last.IDs))
	}
	return nil
}

func (c *conversation) tokensOf(text string) error {
	tok, err := c.o.Tokenizer()
	if err != nil {
		fmt.Fprintln(c.stderr, oneLine(err.Error()))
		return nil
	}
	ids, err := c.o.Tokens(spillway.Request{Prompt: text, Raw: true})
	if err != nil {
		fmt.Fprintln(c.stderr, oneLine(err.Error()))
		return nil
	}
	var line strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&line, " %q:%d", tok.Token(id), id)
	}
	fmt.Fprintf(c.stderr, "%s:%s\n", count(len(ids), "token"), line.String())
	return nil
}
