// Package chat renders conversations with a model's own chat template, and watches a model's output for
// stop strings.
//
// Templates are run by internal/chat/jinja under limits on steps, memory and nesting; what a template
// cannot do within them is an error.
package chat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spillway/spillway/internal/chat/jinja"
)

// maxSource bounds the bytes of a template; the longest of those that are known has 19,000.
const maxSource = 1 << 20

// Template is a chat template. It is safe for concurrent use.
type Template struct {
	// Name says where the template is from, for reports: "the model's (…)", or the name of one of ours.
	Name string
	// BOS and EOS are the texts of the tokens, where the template's files name them.
	BOS, EOS string
	// Bare says that the text has no BOS: the tokenizer is to add its own.
	Bare bool

	source  string
	compile sync.Once
	tmpl    *jinja.Template
	err     error
}

// Input is what a template is given.
type Input struct {
	Messages []*Object // in order, keys as the request has them
	Tools    []any     // nil: none
	Kwargs   *Object   // further variables, such as enable_thinking; nil: none
	BOS, EOS string    // texts of the tokens; "": those of the Template
	Now      time.Time // what strftime_now says

	// MaxBytes bounds what the template makes, in bytes of strings and lists, dropped ones included; 0 is
	// 256 MiB and 64 times the size of the input.
	MaxBytes int64

	// AddGenerationPrompt ends the text with the beginning of the assistant's answer.
	AddGenerationPrompt bool
	// ContinueFinalMessage ends the text with the last message's content, to be continued.
	ContinueFinalMessage bool
}

// Raised is an error that the template itself raised, by raise_exception: its text is for the user.
type Raised struct{ Message string }

func (e *Raised) Error() string { return "the chat template refuses: " + e.Message }

// Parse compiles a template, in the dialect of Jinja that Hugging Face's transformers use.
func Parse(source string) (*Template, error) {
	t := newTemplate("given", source)
	if err := t.load(); err != nil {
		return nil, err
	}
	return t, nil
}

// newTemplate makes a template that is compiled when it is first rendered.
func newTemplate(name, source string) *Template { return &Template{Name: name, source: source} }

// Source returns the text of the template.
func (t *Template) Source() string { return t.source }

func (t *Template) load() error {
	t.compile.Do(func() {
		if len(t.source) > maxSource {
			t.err = fmt.Errorf("the chat template has %d bytes; at most %d are possible", len(t.source), maxSource)
			return
		}
		if t.tmpl, t.err = jinja.Parse(t.source); t.err != nil {
			t.err = fmt.Errorf("the chat template cannot be read: %w", t.err)
		}
	})
	return t.err
}

// Span is a range of bytes of a text.
type Span = jinja.Span

// Render makes the text of a conversation. The text has its BOS already if the template writes one:
// encode it without adding another.
func (t *Template) Render(in Input) (string, error) {
	text, _, err := t.RenderSpans(in)
	return text, err
}

// RenderSpans is Render; it also returns which parts of the text came from the request (contents, tools,
// arguments of calls, variables), in order: control tokens that are written there are text. Names of
// roles and the marks of an assistant's reasoning are as good as the template's own.
func (t *Template) RenderSpans(in Input) (text string, user []Span, err error) {
	out, err := t.run(in)
	return out.Text, out.User, err
}

func (t *Template) run(in Input) (jinja.Result, error) {
	if err := t.load(); err != nil {
		return jinja.Result{}, err
	}
	if in.ContinueFinalMessage {
		return t.renderOpen(in)
	}
	return t.render(in)
}

func (t *Template) render(in Input) (jinja.Result, error) {
	in.BOS, in.EOS = cmp.Or(in.BOS, t.BOS), cmp.Or(in.EOS, t.EOS)
	vars, size, err := variables(in)
	if err != nil {
		return jinja.Result{}, err
	}
	limits := jinja.DefaultLimits
	if limits.Bytes += 64 * size; in.MaxBytes > 0 {
		limits.Bytes = in.MaxBytes
	}
	out, err := t.tmpl.Run(vars, limits)
	var raised *Raised
	if errors.As(err, &raised) {
		return jinja.Result{}, raised
	}
	if err != nil {
		return jinja.Result{}, fmt.Errorf("the chat template failed: %w", err)
	}
	return out, nil
}

// variables are the names that a template sees; size is about the bytes of their texts.
func variables(in Input) (vars map[string]jinja.Value, size int64, err error) {
	vars = map[string]jinja.Value{"tools": nil, "documents": nil}
	put := func(name string, v any) {
		if err == nil {
			vars[name], err = toJinja(v)
			size += SizeOf(v)
		}
	}
	if in.Kwargs != nil {
		for _, f := range in.Kwargs.Fields {
			put(f.Key, f.Value)
		}
	}
	messages := withReasoning(in.Messages)
	list := jinja.NewList(make([]jinja.Value, len(messages))...)
	for i, m := range messages {
		if list.Items[i], err = messageToJinja(m); err != nil {
			return nil, 0, err
		}
		size += SizeOf(m)
	}
	vars["messages"] = list
	if in.Tools != nil {
		put("tools", in.Tools)
	}
	put("add_generation_prompt", in.AddGenerationPrompt)
	vars["bos_token"], vars["eos_token"] = in.BOS, in.EOS
	vars["raise_exception"] = &jinja.Func{Name: "raise_exception", Call: func(args []jinja.Value, _ *jinja.Dict) (jinja.Value, error) {
		return nil, &Raised{argument(args, "")}
	}}
	vars["strftime_now"] = &jinja.Func{Name: "strftime_now", Call: func(args []jinja.Value, _ *jinja.Dict) (jinja.Value, error) {
		return strftime(in.Now, argument(args, "%Y-%m-%d")), nil
	}}
	return vars, size, err
}

// SizeOf is about the bytes of a value's texts.
func SizeOf(v any) int64 {
	n := int64(16)
	switch v := v.(type) {
	case string:
		n += int64(len(v))
	case []any:
		for _, item := range v {
			n += SizeOf(item)
		}
	case *Object:
		for _, f := range v.Fields {
			n += int64(len(f.Key)) + SizeOf(f.Value)
		}
	}
	return n
}

func argument(args []jinja.Value, missing string) string {
	if len(args) == 0 {
		return missing
	}
	return jinja.Print(args[0])
}

// withReasoning gives messages with reasoning the names that templates know it by, as transformers does:
// reasoning_content and thinking. Requests may call it reasoning, too.
func withReasoning(messages []*Object) []*Object {
	out := make([]*Object, len(messages))
	for i, m := range messages {
		out[i] = m
		for _, key := range []string{"reasoning_content", "reasoning", "thinking"} {
			text, ok := m.Get(key).(string)
			if !ok {
				continue
			}
			out[i] = &Object{slices.Clone(m.Fields)}
			for _, other := range []string{"reasoning_content", "thinking"} {
				if m.Get(other) == nil {
					out[i].Set(other, text)
				}
			}
			break
		}
	}
	return out
}

// openMark ends the last message's content while an open text is rendered: what follows it is cut off.
const openMark = "\u2060continue-here\u2060"

// renderOpen renders a text that ends with the last message's content.
func (t *Template) renderOpen(in Input) (jinja.Result, error) {
	if len(in.Messages) == 0 {
		return jinja.Result{}, errors.New("there is no message to continue")
	}
	last := in.Messages[len(in.Messages)-1]
	marked, ok := markContent(last)
	if !ok {
		return jinja.Result{}, errors.New("only a message with text can be continued")
	}
	in.Messages = append(slices.Clone(in.Messages[:len(in.Messages)-1]), marked)
	out, err := t.render(in)
	if err != nil {
		return out, err
	}
	at := strings.LastIndex(out.Text, openMark)
	if at < 0 {
		return jinja.Result{}, errors.New("the chat template does not show the message to be continued")
	}
	out.Text, out.User = out.Text[:at], before(out.User, at)
	return out, nil
}

// before are the parts of spans before a place.
func before(spans []Span, at int) []Span {
	for i, s := range spans {
		if s.End >= at {
			if s.Start < at {
				return append(spans[:i:i], Span{Start: s.Start, End: at})
			}
			return spans[:i]
		}
	}
	return spans
}

// markContent returns a copy of a message whose text ends with the mark.
func markContent(m *Object) (*Object, bool) {
	copied := &Object{slices.Clone(m.Fields)}
	switch content := m.Get("content").(type) {
	case string:
		copied.Set("content", content+openMark)
		return copied, true
	case []any:
		for i := len(content) - 1; i >= 0; i-- {
			part, ok := content[i].(*Object)
			if !ok {
				continue
			}
			if text, ok := part.Get("text").(string); ok {
				marked := &Object{slices.Clone(part.Fields)}
				marked.Set("text", text+openMark)
				parts := slices.Clone(content)
				parts[i] = marked
				copied.Set("content", parts)
				return copied, true
			}
		}
	}
	return nil, false
}
