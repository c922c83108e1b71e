// Package chat renders conversations with a model's own chat template, and watches a model's output for
// stop strings.
package chat

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/ardanlabs/jinja"
)

// Limits of a rendering. They bound time and the nesting of macros; see docs in guard.go for what they
// cannot bound.
const (
	maxSource = 1 << 20          // bytes of a template
	maxOutput = 64 << 20         // bytes of a rendered prompt
	maxTime   = 20 * time.Second // of one rendering
)

// Template is a chat template. It is safe for concurrent use.
type Template struct {
	// Name says where the template is from, for reports: "the model's", or "chatml (default)".
	Name string

	source  string
	compile sync.Once
	tmpl    *jinja.Template
	names   hookNames
	err     error
}

// Input is what a template is given.
type Input struct {
	Messages []*Object // in order, keys as the request has them
	Tools    []any     // nil: none
	Kwargs   *Object   // further variables, such as enable_thinking; nil: none
	BOS, EOS string    // texts of the tokens
	Now      time.Time // what strftime_now says

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
		var guarded string
		if guarded, t.names, t.err = guard(t.source); t.err != nil {
			return
		}
		if t.tmpl, t.err = jinja.Compile(guarded); t.err != nil {
			t.err = fmt.Errorf("the chat template does not compile: %w", t.err)
		}
	})
	return t.err
}

// Render makes the text of a conversation. The text has its BOS already if the template writes one:
// encode it without adding another.
func (t *Template) Render(in Input) (string, error) {
	if err := t.load(); err != nil {
		return "", err
	}
	if in.ContinueFinalMessage {
		return t.renderOpen(in)
	}
	return t.render(in)
}

func (t *Template) render(in Input) (string, error) {
	data, err := variables(in)
	if err != nil {
		return "", err
	}
	watch := &watcher{deadline: time.Now().Add(maxTime)}
	maps.Copy(data, watch.hooks(t.names))
	text, err := watch.run(t.tmpl, data)
	var raised *Raised
	switch {
	case errors.As(err, &raised):
		return "", raised
	case err != nil:
		return "", fmt.Errorf("the chat template failed: %w", err)
	case len(text) > maxOutput:
		return "", fmt.Errorf("the chat template made %d bytes; at most %d are possible", len(text), maxOutput)
	}
	return text, nil
}

// variables are the names that a template sees.
func variables(in Input) (map[string]jinja.Value, error) {
	data := map[string]jinja.Value{}
	if in.Kwargs != nil {
		for _, f := range in.Kwargs.Fields {
			v, err := toJinja(f.Value)
			if err != nil {
				return nil, err
			}
			data[f.Key] = v
		}
	}
	messages, err := listToJinja(withReasoning(in.Messages))
	if err != nil {
		return nil, err
	}
	data["messages"] = messages
	data["add_generation_prompt"] = jinja.NewBool(in.AddGenerationPrompt)
	data["bos_token"], data["eos_token"] = jinja.NewString(in.BOS), jinja.NewString(in.EOS)
	data["tools"], data["documents"] = jinja.None(), orNone(data, "documents")
	if in.Tools != nil {
		if data["tools"], err = listToJinja(in.Tools); err != nil {
			return nil, err
		}
	}
	data["raise_exception"] = jinja.NewCallable("raise_exception", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		return jinja.None(), &Raised{argument(args, "")}
	})
	data["strftime_now"] = jinja.NewCallable("strftime_now", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		return jinja.NewString(strftime(in.Now, argument(args, "%Y-%m-%d"))), nil
	})
	return data, nil
}

func orNone(data map[string]jinja.Value, key string) jinja.Value {
	if v, ok := data[key]; ok {
		return v
	}
	return jinja.None()
}

func argument(args []jinja.Value, missing string) string {
	if len(args) == 0 {
		return missing
	}
	if args[0].IsString() {
		return args[0].AsString()
	}
	return args[0].String()
}

// reasoningKeys are the names that models and servers use for an answer's reasoning.
var reasoningKeys = []string{"reasoning_content", "reasoning", "thinking"}

// withReasoning gives messages with reasoning all of its names, as transformers does.
func withReasoning(messages []*Object) []*Object {
	out := make([]*Object, len(messages))
	for i, m := range messages {
		out[i] = m
		for _, key := range reasoningKeys {
			text, ok := m.Get(key).(string)
			if !ok {
				continue
			}
			copied := &Object{append([]Field(nil), m.Fields...)}
			for _, other := range reasoningKeys {
				if copied.Get(other) == nil {
					copied.Set(other, text)
				}
			}
			out[i] = copied
			break
		}
	}
	return out
}

// openMark ends the last message's content while an open text is rendered: what follows it is cut off.
const openMark = "⁠continue-here⁠"

// renderOpen renders a text that ends with the last message's content.
func (t *Template) renderOpen(in Input) (string, error) {
	if len(in.Messages) == 0 {
		return "", errors.New("there is no message to continue")
	}
	last := in.Messages[len(in.Messages)-1]
	marked, ok := markContent(last)
	if !ok {
		return "", errors.New("only a message with text can be continued")
	}
	in.Messages = append(append([]*Object(nil), in.Messages[:len(in.Messages)-1]...), marked)
	text, err := t.render(in)
	if err != nil {
		return "", err
	}
	at := strings.LastIndex(text, openMark)
	if at < 0 {
		return "", errors.New("the chat template does not show the message to be continued")
	}
	return text[:at], nil
}

// markContent returns a copy of a message whose text ends with the mark.
func markContent(m *Object) (*Object, bool) {
	copied := &Object{append([]Field(nil), m.Fields...)}
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
				marked := &Object{append([]Field(nil), part.Fields...)}
				marked.Set("text", text+openMark)
				parts := append([]any(nil), content...)
				parts[i] = marked
				copied.Set("content", parts)
				return copied, true
			}
		}
	}
	return nil, false
}
