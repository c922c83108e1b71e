package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/storyteller"
	"github.com/spillway/spillway/internal/tokenizer"
	"github.com/spillway/spillway/internal/vfs"
)

type renderCommand struct {
	Model        string    `arg:"" help:"Model: a GGUF file, a folder (one with only a tokenizer will do), a .jinja template, or a known name."`
	Now          time.Time `help:"What templates take for the present, as in 2025-03-14T09:26:53Z. Default: the time." placeholder:"TIME"`
	ChatTemplate string    `help:"Chat template: a file, one of the model's own by name, or a format (chatml, llama3, gemma, plain …). Default: the model's." placeholder:"FILE|NAME"`
}

func (*renderCommand) Help() string {
	return "Writes messages as the model's chat template does. Reads JSON lines on stdin and answers each with a line: \n\n" +
		`{"messages": […], "tools": […], "kwargs": {"add_generation_prompt": true, "enable_thinking": false}} gives {"text": "…"}, or {"error": "…"}. ` +
		"\n\nWith \"spans\": true the answer also has \"user\": the ranges of bytes of the text that came from the messages.\n\n" +
		"Example:\n\n  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | spillway render model.gguf"
}

// unused names the flags that mean nothing here.
func (*renderCommand) unused() []string {
	return []string{"memory", "context", "threads", "exact", "kv", "json"}
}

func (c *renderCommand) run(s *session) error {
	r, err := c.open(s)
	if err != nil {
		return err
	}
	if err := (templateFlags{ChatTemplate: c.ChatTemplate}).useTemplate(templateSet{r.set}); err != nil {
		return err
	}
	return s.answerLines(r.line)
}

// A renderer renders the lines of one run.
type renderer struct {
	set      *chat.Set
	bos, eos string // of a GGUF file; others name them beside the template
	now      time.Time
}

func (c *renderCommand) open(s *session) (*renderer, error) {
	r := &renderer{now: c.Now}
	if strings.HasSuffix(c.Model, ".jinja") {
		text, err := readTemplate(c.Model)
		if err == nil {
			r.set = &chat.Set{}
			err = r.set.UseSource(c.Model, text)
		}
		return r, err
	}
	path, err := s.templatePath(c.Model)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		fsys := vfs.OS()
		r.set, err = chat.FromFolder(func(name string) (vfs.File, error) { return fsys.Open(filepath.Join(path, filepath.FromSlash(name))) })
		return r, err
	}
	return r, r.openGGUF(path)
}

// templatePath returns the folder or the GGUF file where a model's templates are; "" is the embedded one.
func (s *session) templatePath(name string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		if path, err := checkpoint.Find(vfs.OS(), name); err == nil && strings.EqualFold(filepath.Ext(path), ".gguf") {
			return path, nil
		}
		return name, nil
	case err == nil && !strings.EqualFold(filepath.Ext(name), ".gguf"):
		return filepath.Dir(name), nil
	}
	path, err := s.resolve(name)
	return string(path), err
}

func (r *renderer) openGGUF(path string) (err error) {
	var cat *checkpoint.Catalog
	if path == "" {
		cat, err = checkpoint.OpenFile(storyteller.File())
	} else {
		cat, err = checkpoint.Open(vfs.OS(), path)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cat.Close()) }()
	if r.set, err = chat.FromCatalog(cat); err != nil {
		return err
	}
	tok, err := tokenizer.Load(cat, func(n int) ([]byte, error) { return make([]byte, n), nil })
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
	kwargs, ok := request.Get("kwargs").(*chat.Object)
	if !ok && request.Get("kwargs") != nil {
		return nil, errors.New("kwargs is no object")
	}
	if ok {
		setArguments(&in, kwargs)
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

// maxJSONLine bounds a line of stdin.
const maxJSONLine = 64 << 20

// answerLines reads JSON objects on stdin, one a line, and prints what answer makes of each, or
// {"error": "…"}. Output is written once per line, so that a program on the other side can wait for it.
func (s *session) answerLines(answer func(*chat.Object) (any, error)) error {
	lines := bufio.NewScanner(s.stdin)
	lines.Buffer(nil, maxJSONLine)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var result any
		request := new(chat.Object)
		err := request.UnmarshalJSON(lines.Bytes())
		if err == nil {
			result, err = answer(request)
		}
		if err != nil {
			result = map[string]string{"error": err.Error()}
		}
		if err := s.printJSON(result); err != nil {
			return fmt.Errorf("writing the answer: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading stdin: %w", err)
	}
	return nil
}
