package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/chat/dialect"
)

type parseCommand struct {
	linesOnly
	Model     string `arg:"" optional:"" help:"Model that chooses the dialects: a GGUF file, a folder, a .jinja template, or a known name."`
	Dialect   string `help:"Dialect of tool calls (hermes, llama3_json …), or none. Default: the model's." placeholder:"NAME"`
	Reasoning string `help:"Dialect of reasoning (qwen3, deepseek_r1 …), or none. Default: the model's." placeholder:"NAME"`
}

func (*parseCommand) Help() string {
	return "Reads what a model wrote: its content, its reasoning and the tools that it calls. Reads JSON lines on stdin and answers each with a line: \n\n" +
		`{"text": "…", "tools": […], "kwargs": {"prompt_open": false}} gives {"content": "…", "reasoning": "…", "tool_calls": [{"name": "…", "arguments": "…"}]}, or {"error": "…"}. ` +
		"\n\nThe schemas of tools give the types of arguments. prompt_open: the prompt has opened the reasoning. " +
		`"split": 5 feeds the text in two parts, "split": "each" byte by byte: the answer is the same. An unknown NAME gives the list of them.` +
		"\n\nExample:\n\n  echo '{\"text\": \"<think>hm</think>Hi\"}' | spillway parse --reasoning qwen3"
}

// A parsedMessage is the answer to a line.
type parsedMessage struct {
	Content   string       `json:"content"`
	Reasoning string       `json:"reasoning"`
	ToolCalls []parsedCall `json:"tool_calls"`
}

type parsedCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // a JSON object
}

func (c *parseCommand) run(s *session) error {
	o, err := c.options(s)
	if err != nil {
		return err
	}
	return s.answerLines(objects(func(request *chat.Object) (any, error) { return parseLine(o, request) }))
}

// options are those that all lines share.
func (c *parseCommand) options(s *session) (dialect.Options, error) {
	o := dialect.Options{Tool: c.Dialect, Reasoning: c.Reasoning}
	if c.Model == "" && o.Tool == "" && o.Reasoning == "" {
		return o, usagef("parse needs a model, --dialect or --reasoning")
	}
	if c.Model != "" {
		tool, reasoning, err := s.dialects(c.Model)
		if err != nil {
			return o, err
		}
		o.Tool, o.Reasoning = cmp.Or(o.Tool, tool), cmp.Or(o.Reasoning, reasoning)
	}
	p, err := dialect.New(o)
	if err != nil {
		return o, usageError{err}
	}
	p.Close()
	return o, nil
}

// dialects are those of a model.
func (s *session) dialects(model string) (tool, reasoning string, err error) {
	r, err := s.templates(model)
	if err != nil {
		return "", "", err
	}
	t, err := r.set.For(true)
	if err != nil {
		return "", "", err
	}
	tool, reasoning = dialect.Detect(t.Source(), filepath.Base(model))
	return tool, reasoning, nil
}

func parseLine(o dialect.Options, request *chat.Object) (any, error) {
	text, ok := request.Get("text").(string)
	if !ok {
		return nil, errors.New("text is missing, or no string")
	}
	pieces, err := splitText(text, request.Get("split"))
	if err != nil {
		return nil, err
	}
	tools, ok := request.Get("tools").([]any)
	if !ok && request.Get("tools") != nil {
		return nil, errors.New("tools is no list")
	}
	if o.Tools, err = dialect.ReadTools(tools); err != nil {
		return nil, err
	}
	if kwargs, ok := request.Get("kwargs").(*chat.Object); ok {
		o.PromptOpen = kwargs.Get("prompt_open") == true
	}
	p, err := dialect.New(o)
	if err != nil {
		return nil, err
	}
	var all []dialect.Event
	for _, piece := range pieces {
		all = append(all, p.Write(piece)...)
	}
	return messageOf(append(all, p.Close()...)), nil
}

// splitText cuts a text at a byte, or at each one.
func splitText(text string, split any) ([]string, error) {
	switch at := split.(type) {
	case nil:
		return []string{text}, nil
	case int64:
		if 0 <= at && at <= int64(len(text)) {
			return []string{text[:at], text[at:]}, nil
		}
	case string:
		if at == "each" {
			pieces := make([]string, len(text))
			for i := range pieces {
				pieces[i] = text[i : i+1]
			}
			return pieces, nil
		}
	}
	return nil, fmt.Errorf(`split must be a number from 0 to %d, the bytes of the text, or "each"`, len(text))
}

// messageOf puts the events of an answer together.
func messageOf(events []dialect.Event) *parsedMessage {
	var whole dialect.Message
	for _, e := range events {
		whole.Add(e)
	}
	m := &parsedMessage{Content: whole.Content(), Reasoning: whole.Reasoning(), ToolCalls: []parsedCall{}}
	for _, c := range whole.Calls() {
		m.ToolCalls = append(m.ToolCalls, parsedCall(c))
	}
	return m
}
