package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/tokenizer"
	"github.com/spillway/spillway/internal/vfs"
)

type renderCommand struct {
	linesOnly
	Model string `arg:"" help:"Model: a GGUF file, a folder (one with only a tokenizer will do), a .jinja template, or a known name."`
	Now   string `help:"What templates take for the present, as in 2025-03-14T09:26:53Z. Default: the time." placeholder:"TIME"`
	templateFlag
}

func (*renderCommand) Help() string {
	return "Writes messages as the model's chat template does. Reads JSON lines on stdin and answers each with a line: \n\n" +
		`{"messages": […], "tools": […], "kwargs": {"add_generation_prompt": true, "enable_thinking": false}} gives {"text": "…"}, or {"error": "…"}. ` +
		"\n\nadd_generation_prompt and continue_final_message may stand beside the messages, too. With \"spans\": true the answer also has \"user\": the ranges of bytes of the text that came from the messages.\n\n" +
		"Example:\n\n  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | spillway render model.gguf"
}

func (c *renderCommand) run(s *session) error {
	r, err := s.templates(c.Model)
	if err != nil {
		return err
	}
	if c.Now != "" {
		if r.now, err = time.Parse(time.RFC3339, c.Now); err != nil {
			return usagef("--now: %.40q is no time; one is written 2025-03-14T09:26:53Z", c.Now)
		}
	}
	if err := c.useTemplate(templateSet{r.set}); err != nil {
		return err
	}
	return s.answerLines(objects(r.line))
}

// A renderer renders the lines of one run.
type renderer struct {
	set      *chat.Set
	bos, eos string // of a GGUF file; others name them beside the template
	now      time.Time
}

// templates reads the templates of a MODEL argument, or one that is a file of its own.
func (s *session) templates(model string) (*renderer, error) {
	r := &renderer{}
	if strings.HasSuffix(model, ".jinja") {
		text, err := readTemplate(model)
		if err == nil {
			r.set = &chat.Set{}
			err = r.set.UseSource(model, text)
		}
		return r, err
	}
	path, err := s.templatePath(model)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(string(path)); err == nil && info.IsDir() {
		fsys := vfs.OS()
		r.set, err = chat.FromFolder(func(name string) (vfs.File, error) {
			return fsys.Open(filepath.Join(string(path), filepath.FromSlash(name)))
		})
		return r, err
	}
	return r, r.openGGUF(path)
}

// templatePath returns the folder or the GGUF file where a model's templates are; "" is the embedded one.
func (s *session) templatePath(name string) (modelPath, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		if path, err := checkpoint.Find(vfs.OS(), name); err == nil && isModelFile(path) {
			return modelPath(path), nil
		}
		return modelPath(name), nil
	case err == nil && !isModelFile(name):
		return modelPath(filepath.Dir(name)), nil
	}
	return s.resolve(name)
}

func (r *renderer) openGGUF(path modelPath) (err error) {
	cat, err := path.catalog()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cat.Close()) }()
	if r.set, err = chat.FromCatalog(cat); err != nil {
		return err
	}
	tok, err := tokenizer.Load(cat, nil)
	if err != nil {
		return nil // the template may do without
	}
	r.set.Guess(func(token string) bool { _, ok := tok.ID(token); return ok })
	if id, ok := tok.BOS(); ok {
		r.bos = tok.Token(id)
	}
	if eos := tok.EOS(); len(eos) > 0 {
		r.eos = tok.Token(eos[0])
	}
	return nil
}

// rendered is the answer to a line.
type rendered struct {
	Text string   `json:"text"`
	User [][2]int `json:"user,omitempty"`
}

func (r *renderer) line(request *chat.Object) (any, error) {
	in := chat.Input{AddGenerationPrompt: true, Kwargs: &chat.Object{}, BOS: r.bos, EOS: r.eos, Now: r.now}
	if in.Now.IsZero() {
		in.Now = time.Now()
	}
	messages, ok := request.Get("messages").([]any)
	if !ok {
		return nil, errors.New("messages is missing, or no list")
	}
	for i, m := range messages {
		o, ok := m.(*chat.Object)
		if !ok {
			return nil, fmt.Errorf("message %d is no object", i)
		}
		in.Messages = append(in.Messages, o)
	}
	if in.Tools, ok = request.Get("tools").([]any); !ok && request.Get("tools") != nil {
		return nil, errors.New("tools is no list")
	}
	for key, into := range map[string]*bool{"add_generation_prompt": &in.AddGenerationPrompt, "continue_final_message": &in.ContinueFinalMessage} {
		if v := request.Get(key); v != nil {
			if *into, ok = v.(bool); !ok {
				return nil, fmt.Errorf("%s is neither true nor false", key)
			}
		}
	}
	kwargs, ok := request.Get("kwargs").(*chat.Object)
	if !ok && request.Get("kwargs") != nil {
		return nil, errors.New("kwargs is no object")
	}
	if ok {
		setArguments(&in, kwargs)
	}
	for i, tool := range in.Tools {
		if _, ok := tool.(*chat.Object); !ok {
			return nil, fmt.Errorf("tool %d is no object", i)
		}
	}
	t, err := r.set.For(len(in.Tools) > 0)
	if err != nil {
		return nil, err
	}
	text, user, err := t.RenderSpans(in)
	out := rendered{Text: text}
	if request.Get("spans") == true {
		for _, s := range user {
			out.User = append(out.User, [2]int{s.Start, s.End})
		}
	}
	return out, err
}

// setArguments sorts kwargs into what we know and what only the template knows.
func setArguments(in *chat.Input, kwargs *chat.Object) {
	for _, f := range kwargs.Fields {
		flag, isFlag := f.Value.(bool)
		tools, isList := f.Value.([]any)
		switch {
		case f.Key == "add_generation_prompt" && isFlag:
			in.AddGenerationPrompt = flag
		case f.Key == "continue_final_message" && isFlag:
			in.ContinueFinalMessage = flag
		case f.Key == "tools" && isList:
			in.Tools = tools
		default:
			in.Kwargs.Set(f.Key, f.Value)
		}
	}
}
