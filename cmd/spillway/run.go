package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/report"
)

type runCommand struct {
	Model  string `arg:"" optional:"" help:"GGUF file, folder in Hugging Face layout, or known name. Default: the embedded Storyteller."`
	Prompt string `arg:"" optional:"" help:"The prompt; - or a pipe gives it on stdin."`

	System     string `help:"System message." placeholder:"TEXT"`
	Raw        bool   `help:"The prompt is the whole text: no chat template."`
	PromptFile string `help:"Read the prompt from a file." placeholder:"FILE" type:"path"`
	samplingFlags
}

func (*runCommand) Help() string {
	return "One answer, streamed to stdout; a report goes to stderr.\n\nExamples:\n\n" +
		"  spillway run \"Tell me a story about a fox\"\n\n" +
		"  spillway run model.gguf \"Why is the sky blue?\" --memory 1GiB\n\n" +
		"  git diff | spillway run model.gguf - --system \"Write a commit message.\""
}

// maxPrompt is how much text is read from a file or a pipe.
const maxPrompt = 8 << 20

func (c *runCommand) run(s *session) error {
	path, prompt, err := c.arguments(s)
	if err != nil {
		return err
	}
	ctx, stop := s.interruptible()
	defer stop()
	o, err := s.open(ctx, path)
	if err != nil {
		return s.interrupted(ctx, err)
	}
	return s.interrupted(ctx, o.close(c.answer(ctx, s, o, prompt)))
}

// arguments decides what model and prompt mean.
func (c *runCommand) arguments(s *session) (modelPath, string, error) {
	var path modelPath
	var err error
	prompt := c.Prompt
	switch {
	case c.Model == "" || c.Model == "-" && c.Prompt == "":
		prompt = c.Model
	case c.Prompt != "" || c.PromptFile != "":
		path, err = s.resolve(c.Model)
	default:
		path, prompt, err = s.modelOrPrompt(c.Model)
	}
	if err != nil {
		return "", "", err
	}
	if c.PromptFile != "" {
		if prompt != "" {
			return "", "", usagef("there is a prompt and a --prompt-file; one of them would do")
		}
		prompt, err = readPromptFile(c.PromptFile)
		return path, prompt, err
	}
	if prompt == "" || prompt == "-" {
		prompt, err = s.readPrompt(prompt == "-")
	}
	return path, prompt, err
}

// modelOrPrompt decides what a single argument is: a model if it names one, else a prompt for the
// embedded model unless it looks like a path.
func (s *session) modelOrPrompt(arg string) (path modelPath, prompt string, err error) {
	path, err = s.find(arg)
	switch {
	case err == nil:
		return path, "", nil
	case !errors.Is(err, errNoModel):
		return "", "", err
	case looksLikePath(arg):
		_, err = s.resolve(arg)
		return "", "", err
	}
	return "", arg, nil
}

func readPromptFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("prompt file: %w", err)
	}
	defer f.Close()
	return readText(f)
}

// readPrompt reads stdin, if it is a pipe or the user asked for it.
func (s *session) readPrompt(asked bool) (string, error) {
	if !asked && isTerminal(s.stdin) {
		return "", usagef("there is no prompt; give one, or - to type it")
	}
	text, err := readText(s.stdin)
	if err == nil && text == "" {
		err = usagef("the prompt on stdin is empty")
	}
	return text, err
}

// readText reads a prompt; one newline at its end, which shells and editors add, is not part of it.
func readText(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPrompt+1))
	if err != nil {
		return "", fmt.Errorf("reading the prompt: %w", err)
	}
	if len(data) > maxPrompt {
		return "", fmt.Errorf("the prompt is longer than %d MiB", maxPrompt>>20)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

// request is what the flags ask of the model.
func (c *runCommand) request(o *opened, prompt string) (spillway.Request, error) {
	r, err := c.samplingFlags.request(o.Defaults())
	r.Prompt, r.Raw = prompt, c.Raw
	if c.System != "" {
		if c.Raw {
			return r, usagef("--system needs the chat template that --raw leaves out")
		}
		r.Messages = []spillway.Message{{Role: "system", Content: c.System}, {Role: "user", Content: prompt}}
	}
	return r, err
}

func (c *runCommand) answer(ctx context.Context, s *session, o *opened, prompt string) error {
	r, err := c.request(o, prompt)
	if err != nil {
		return err
	}
	r.IDs, err = o.Tokens(r)
	if err != nil {
		return err
	}
	m, err := s.start(ctx, o, spillway.ModelOptions{Context: s.contextFor(o, r)})
	if err != nil {
		return err
	}
	out := newStream(s)
	a, err := m.Generate(ctx, r, out.emit)
	if err == nil {
		err = out.end()
	}
	if err != nil {
		return errors.Join(err, m.Close())
	}
	p, w, rep := m.CurrentPlan(), workOf(m, a), newReport(o, m, a)
	rep.IO = report.IO{RequiredBytes: w.Required, ReadBytes: w.Read, HitBytes: m.IO().Hit}
	if err := m.Close(); err != nil {
		return err
	}
	if err := s.report(ctx, o, rep, p, w); err != nil {
		return err
	}
	if a.FinishReason == spillway.FinishCancelled {
		return errInterrupted
	}
	return nil
}

// contextFor is the context to plan for: what --context says, else prompt + max tokens.
func (s *session) contextFor(o *opened, r spillway.Request) int {
	if s.flags.Context > 0 {
		return s.flags.Context
	}
	n := len(r.IDs)
	return n + o.MaxTokens(r, n)
}

// A stream prints an answer as it comes, unless JSON is wanted.
type stream struct {
	w    io.Writer // nil: nothing is printed
	last byte
	err  error
}

func newStream(s *session) *stream {
	if s.flags.JSON {
		return &stream{}
	}
	return &stream{w: s.stdout}
}

func (t *stream) emit(text string) {
	if t.w == nil || t.err != nil || text == "" {
		return
	}
	_, t.err = io.WriteString(t.w, text)
	t.last = text[len(text)-1]
}

// end finishes the line.
func (t *stream) end() error {
	if t.w != nil && t.err == nil && t.last != '\n' {
		_, t.err = io.WriteString(t.w, "\n")
	}
	if t.err != nil {
		return fmt.Errorf("writing the answer: %w", t.err)
	}
	return nil
}
