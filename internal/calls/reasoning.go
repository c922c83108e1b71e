package calls

import (
	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/grammar/cfg"
)

// Reasoned is content, which reasoning may stand before, as the dialect of reasoning has it. After a prompt that opened
// the reasoning it must end first.
func Reasoned(o Options, content grammar.Format) (grammar.Format, error) {
	m := dialect.ReasoningMarks(o.Tool, o.Reasoning)
	if m.Channels {
		return channelsOf(m.Name).content(&o, content), nil
	}
	return reasoned(&o, wrapped(&o, content), false), nil
}

// reasoned is the rest of an answer behind its reasoning, which an answer may leave out; if it may be cut, an answer may
// end in the midst of it.
func reasoned(o *Options, rest grammar.Format, cut bool) grammar.Format {
	m := dialect.ReasoningMarks(o.Tool, o.Reasoning)
	if len(m.End) == 0 || len(m.Open) == 0 && !o.PromptOpen {
		return rest
	}
	opens := o.anyText(m.Open)
	if o.PromptOpen {
		all := grammar.Sequence{maybeOne(grammar.OneOf{grammar.Sequence{blanks, opens}}), o.thinking(m), lines, rest}
		if cut {
			return grammar.OneOf{o.thoughts(m), all}
		}
		return all
	}
	before := grammar.OneOf{grammar.Sequence{blanks, opens, o.thinking(m), lines}}
	if m.Bare {
		before = append(before, grammar.Sequence{blanks, o.anyText(m.End)})
	}
	return grammar.Sequence{maybeOne(before), rest}
}

// anyText is one of several texts.
func (o *Options) anyText(texts []string) grammar.Format {
	var all grammar.OneOf
	for _, text := range texts {
		all = append(all, o.text(text))
	}
	return all
}

// thoughts are the text of reasoning.
func (o *Options) thoughts(m dialect.Marks) grammar.Format {
	words := m.End
	if m.Interrupts != "" {
		words = append(words[:len(words):len(words)], m.Interrupts)
	}
	return grammar.FreeText{Excludes: words}
}

// thinking is reasoning that was opened, with its end.
func (o *Options) thinking(m dialect.Marks) grammar.Format {
	return grammar.Sequence{o.thoughts(m), o.anyText(m.End)}
}

// wrapped is content with what the dialects of reasoning and of calls may put around it.
func wrapped(o *Options, content grammar.Format) grammar.Format {
	var before, after grammar.OneOf
	all := grammar.OneOf{content}
	for _, w := range dialect.ReasoningMarks(o.Tool, o.Reasoning).Wraps {
		switch {
		case w.Spaced && w.Open != "": // the end belongs to the beginning
			all = append(all, grammar.Sequence{o.text(w.Open), lines, content, lines, o.text(w.End)})
		case w.Spaced:
			after = append(after, grammar.Sequence{lines, o.text(w.End)})
		default:
			before, after = append(before, o.text(w.Open)), append(after, o.text(w.End))
		}
	}
	if dialect.ToolName(o.Tool) == "functionary_v32" {
		before = append(before, grammar.Literal("all\n"))
	}
	return grammar.Sequence{maybeOne(before), all, maybeOne(after)}
}

// maybeOne is one of several parts or nothing.
func maybeOne(parts grammar.OneOf) grammar.Format {
	if len(parts) == 0 {
		return grammar.Literal("")
	}
	return grammar.Repeated{Part: parts, Max: 1}
}

// lines are up to two line breaks, or a space.
var lines = grammar.OneOf{grammar.Literal(""), grammar.Literal("\n"), grammar.Literal("\n\n"), grammar.Literal(" ")}

// blanks is any white space.
var blanks = grammar.Custom(func(b *cfg.Builder) (cfg.Expr, error) {
	return b.Repeat(b.Alt(b.Byte('\t', '\n'), b.Byte('\r', '\r'), b.Byte(' ', ' ')), 0, -1), nil
})
