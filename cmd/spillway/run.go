package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/report"
)

type runCommand struct {
	Model  string `arg:"" optional:"" help:"GGUF file, folder in Hugging Face layout, or known name. Default: the embedded Storyteller."`
	Prompt string `arg:"" optional:"" help:"The prompt; - or a pipe gives it on stdin."`

	System     string `help:"System message." placeholder:"TEXT"`
	Raw        bool   `help:"The prompt is the whole text: no chat template."`
	PromptFile string `help:"Read the prompt from a file." placeholder:"FILE" type:"path"`
	Trace      string `help:"Write which experts each step chose to a file, for spillway trace." placeholder:"FILE" type:"path"`
	predictionFlag
	formFlags
	samplingFlags
}

func (*runCommand) Help() string {
	return "One answer, streamed to stdout; a report goes to stderr.\n\nExamples:\n\n" +
		"  spillway run \"Tell me a story about a fox\"\n\n" +
		"  spillway run model.gguf \"Why is the sky blue?\" --memory 1GiB\n\n" +
		"  git diff | spillway run model.gguf - --system \"Write a commit message.\""
}

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
func (c *runCommand) arguments(s *session) (path modelPath, prompt promptSource, err error) {
	prompt.text, prompt.file = c.Prompt, c.PromptFile
	switch {
	case c.Model == "" && c.Prompt != "":
		err = usagef("the model's name is empty; without one the embedded model answers")
	case c.Model == "" || c.Model == "-" && c.Prompt == "":
		prompt.text = c.Model
	case c.Prompt != "" || c.PromptFile != "":
		path, err = s.resolve(c.Model)
	default:
		path, prompt.text, err = s.modelOrPrompt(c.Model)
	}
	switch {
	case err != nil:
	case prompt.file != "" && prompt.text != "":
		err = usagef("there is a prompt and a --prompt-file; one of them would do")
	case prompt.text == "-":
		prompt.text = ""
	case prompt.text == "" && prompt.file == "" && isTerminal(s.stdin):
		err = usagef("there is no prompt; give one, or - to type it")
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

// request is what the flags ask of the model.
func (c *runCommand) request(o *opened, prompt string) (spillway.Request, error) {
	r, err := c.samplingFlags.request(o)
	r.Prompt, r.Raw = prompt, c.Raw
	if c.Raw {
		r.Dialects = r.Dialects.Or(spillway.NoDialect)
	}
	if c.Raw && c.ChatTemplate != "" {
		return r, usagef("--chat-template and --raw exclude each other")
	}
	if c.System != "" {
		if c.Raw {
			return r, usagef("--system needs the chat template that --raw leaves out")
		}
		r.Messages = []spillway.Message{{Role: "system", Content: c.System}, {Role: "user", Content: prompt}}
	}
	return r, err
}

// encode reads the prompt and turns it into ids. Its texts are garbage after that.
func (c *runCommand) encode(ctx context.Context, s *session, o *opened, prompt promptSource) (spillway.Request, error) {
	lease := newTextLease(o.rt)
	text, err := prompt.read(ctx, s, lease)
	if ctx.Err() != nil {
		return spillway.Request{}, ctx.Err() // the reader may still use the lease
	}
	defer lease.release()
	if err != nil {
		return spillway.Request{}, err
	}
	if err := lease.growFor(text, c.System); err != nil {
		return spillway.Request{}, err
	}
	r, err := c.request(o, text)
	if err != nil {
		return r, err
	}
	r.IDs, err = o.Tokens(r)
	r.Prompt, r.Messages = "", nil
	return r, err
}

// errVectors is what a model without a head answers to those who want text.
func errVectors(o *opened) error {
	return fmt.Errorf("%s gives vectors, not text: probe writes the embedding of a text to a file", visible(o.Name(), 60))
}

func (c *runCommand) answer(ctx context.Context, s *session, o *opened, prompt promptSource) error {
	if o.Embedding() {
		return errVectors(o)
	}
	if err := c.useTemplateOf(s, o); err != nil {
		return err
	}
	r, err := c.encode(ctx, s, o, prompt)
	if err != nil {
		return err
	}
	texts := newTextLease(o.rt)
	defer texts.release()
	form, err := c.form(s, texts)
	if err != nil {
		return err
	}
	release, err := setAside(o, form)
	if err != nil {
		return err
	}
	defer release()
	log := new(spillway.ExpertLog)
	m, err := c.start(ctx, s, o, r, spillway.ModelOptions{Edited: form.Kind != 0 || r.Sampling.ChangesLogits(), ExpertLog: log})
	if err != nil {
		return errors.Join(err, log.Close())
	}
	held, err := c.hold(ctx, m, &r, form)
	if err != nil {
		return errors.Join(err, m.Close(), log.Close())
	}
	return errors.Join(generateAndReport(ctx, s, o, m, r, held), log.Close())
}

// start plans for a request, and starts the model.
func (c *runCommand) start(ctx context.Context, s *session, o *opened, r spillway.Request, options spillway.ModelOptions) (*spillway.Model, error) {
	planned := s.contextFor(o, r)
	if n := o.MaxTokens(r, len(r.IDs)); n > planned-len(r.IDs) {
		return nil, &spillway.TooLongError{Prompt: len(r.IDs), MaxTokens: n, Context: planned}
	}
	options.Context, options.Prediction = planned, c.Prediction
	trace, err := c.traceOutput(s, o)
	if err != nil {
		return nil, err
	}
	if trace != nil {
		options.Trace = trace
	}
	m, err := s.start(ctx, o, options)
	if err != nil {
		if trace != nil {
			err = errors.Join(err, trace.Discard())
		}
		return nil, shorter(shorter(err, "max-tokens", c.MaxTokens), "context", s.flags.Context)
	}
	s.tellTrained(o, planned)
	return m, nil
}

// generateAndReport prints an answer and what it cost, also when it ended midway, and closes the model, after what it
// was held to.
func generateAndReport(ctx context.Context, s *session, o *opened, m *spillway.Model, r spillway.Request, held heldForm) error {
	out := newStream(s, s.watchLoading(o, m))
	r.Read, r.Events = true, out.event
	a, failed := m.Generate(ctx, r, nil)
	held.close()
	if err := out.end(a != nil); err != nil || a == nil {
		return errors.Join(failed, err, m.Close())
	}
	p, w, rep, all := m.CurrentPlan(), workOf(m, a), newReport(o, m, a), spanOf(m)
	rep.IO = report.IO{ReadBytes: w.Read, HitBytes: m.IO().Hit}
	if e := p.Experts; e != nil {
		rep.Experts = expertsReport(e, m)
	}
	rep.Form = formReport(m, held.kind)
	if err := m.Close(); err != nil {
		return errors.Join(failed, err)
	}
	if err := s.report(ctx, o, rep, p, w, all); err != nil {
		return errors.Join(failed, err)
	}
	switch {
	case failed != nil:
		return &brokenError{failed}
	case a.FinishReason == spillway.FinishCancelled:
		return cmp.Or(stopped(ctx), errInterrupted)
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
