package calls

import (
	"strings"

	"github.com/spillway/spillway/internal/grammar"
)

// channels are how an answer of messages is written; $text is the body of one.
type channels struct {
	think  string // a message with reasoning, up to where the next begins
	note   string // a message with content that is not the last
	final  string // the last message with content, up to its body
	end    string // of an answer, may be missing
	begun  string // the rest of a note that the prompt has begun, if it has not begun the reasoning
	inside []string
}

// channelsOf is nil for dialects without channels.
func channelsOf(name string) *channels {
	switch name {
	case "harmony":
		return &channels{
			think:  "<|channel|>analysis<|message|>$text<|end|><|start|>assistant",
			note:   "<|channel|>commentary<|message|>$text<|end|><|start|>assistant",
			final:  "<|channel|>final<|message|>$text",
			inside: []string{"<|end|>", "<|call|>", "<|return|>", "<|start|>assistant", "<|channel|>"},
		}
	case "inkling":
		return &channels{
			think:  "<|message_model|><|content_thinking|>$text<|end_message|>",
			note:   "<|message_model|><|content_text|>$text<|end_message|>",
			final:  "<|message_model|><|content_text|>$text",
			end:    "<|end_message|>",
			inside: []string{"<|end_message|>", "<|message_model|>"},
		}
	case "kimi_k3":
		return &channels{
			think:  "<|open|>think<|sep|>$text<|close|>think<|sep|>",
			note:   "<|open|>response<|sep|>$text<|close|>response<|sep|>",
			final:  "<|open|>response<|sep|>$text<|close|>response<|sep|>",
			end:    "<|close|>message<|sep|>",
			begun:  "$text<|close|>response<|sep|>",
			inside: []string{"<|open|>", "<|close|>"},
		}
	case "muse":
		return &channels{
			think:  " to=self<|message|>$text<|eom|><|start|>assistant",
			note:   " to=commentary<|message|>$text<|eom|><|start|>assistant",
			final:  " to=user<|message|>$text",
			end:    "<|eot|>",
			inside: []string{"<|eom|>", "<|eot|>", "<|start|>assistant"},
		}
	}
	return nil
}

// message is a message with a body.
func (c *channels) message(o *Options, form string, body grammar.Format) grammar.Format {
	before, after, _ := strings.Cut(form, "$text")
	return grammar.Sequence{o.text(before), body, o.text(after)}
}

func (c *channels) free() grammar.Format { return grammar.FreeText{Excludes: c.inside} }

// answer is an answer with calls, or one that may have them.
func (c *channels) answer(o *Options, calls grammar.Format) grammar.Format {
	if o.Mode != Auto {
		return c.behind(o, grammar.Literal(""), false, calls)
	}
	if o.Then != nil {
		return c.behind(o, o.Then, false, calls)
	}
	all := c.behind(o, c.free(), true, calls)
	if o.PromptOpen { // an answer that ends in its thoughts
		all = grammar.OneOf{c.free(), all}
	}
	return all
}

// content is an answer with content.
func (c *channels) content(o *Options, content grammar.Format) grammar.Format {
	return c.behind(o, content, false, nil)
}

// behind puts messages of reasoning, and notes, before the last ones: calls, or a message with the body, unless calls
// alone are wanted, when the body is empty.
func (c *channels) behind(o *Options, body grammar.Format, notes bool, calls grammar.Format) grammar.Format {
	before := grammar.OneOf{c.message(o, c.think, c.free())}
	if notes {
		before = append(before, c.message(o, c.note, c.free()))
	}
	messages := grammar.Sequence{grammar.Repeated{Part: before, Max: -1}}
	var last grammar.OneOf
	if calls != nil {
		last = append(last, calls)
	}
	if calls == nil || o.Mode == Auto {
		last = append(last, c.message(o, c.final, body))
	}
	messages = append(messages, last)
	all := grammar.Format(messages)
	switch {
	case o.PromptOpen:
		_, rest, _ := strings.Cut(c.think, "$text")
		all = grammar.Sequence{c.free(), o.text(rest), all}
	case c.begun != "":
		all = c.begin(o, body, notes, calls, all)
	}
	if c.end != "" {
		all = grammar.Sequence{all, grammar.Repeated{Part: o.text(c.end), Max: 1}}
	}
	return all
}

// begin is an answer in the midst of a message with content, or one that begins with another.
func (c *channels) begin(o *Options, body grammar.Format, notes bool, calls, other grammar.Format) grammar.Format {
	text, empty := c.message(o, c.begun, body), c.message(o, c.begun, grammar.Literal(""))
	switch {
	case calls == nil:
		return grammar.OneOf{text, other}
	case o.Mode != Auto:
		return grammar.OneOf{grammar.Sequence{empty, calls}, other}
	case !notes:
		return grammar.OneOf{text, grammar.Sequence{empty, calls}, other}
	}
	// The end of the message may be missing.
	return grammar.OneOf{body, grammar.Sequence{text, grammar.Repeated{Part: calls, Max: 1}}, other}
}
