package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway/spillway"
)

type probeCommand struct {
	Model   string `arg:"" help:"GGUF file, folder in Hugging Face layout, or known name."`
	IDs     string `name:"ids" help:"Token ids, separated by commas." placeholder:"1,2,3"`
	IDsFile string `name:"ids-file" help:"File with token ids, separated by commas or white space." placeholder:"FILE"`
	Prompt  string `help:"Text instead of ids, without chat template." placeholder:"TEXT"`
	Taps    string `help:"Intermediate values to write: all, or names separated by commas; list prints the names." placeholder:"NAME,…"`
	Greedy  int    `help:"Tokens to add, the likeliest each time, whatever they mean." placeholder:"N"`
	Out     string `help:"File to write." placeholder:"F.safetensors"`
	Oracle  string `help:"Run all prompts of a case of the oracle kit and write what its check.py compares." placeholder:"DIR"`
}

func (*probeCommand) Help() string {
	return "One forward pass to a safetensors file: logits f32 [positions, vocabulary], greedy i64 [N], and one f32 tensor [positions, width] " +
		"for each tap. Embedding models give hidden and embedding instead of logits. --exact takes the reference path.\n\nExamples:\n\n" +
		"  spillway probe model.gguf --prompt \"Once upon a time\" --greedy 8 --out out.safetensors\n\n" +
		"  spillway probe model.gguf --ids 1,2,3 --taps layer.0.attn_out,final_norm --out out.safetensors"
}

func (c *probeCommand) run(s *session) error {
	ctx, stop := s.interruptible()
	defer stop()
	o, err := s.openNamed(ctx, c.Model)
	if err != nil {
		return s.interrupted(ctx, err)
	}
	switch {
	case c.Taps == "list":
		_, err = io.WriteString(s.stdout, strings.Join(o.TapNames(), "\n")+"\n")
	case c.Out == "":
		err = usagef("--out is missing: the file to write")
	case c.Oracle != "":
		err = c.runOracle(ctx, s, o)
	default:
		err = c.runProbe(ctx, s, o)
	}
	return s.interrupted(ctx, o.close(err))
}

// ids returns the tokens of whichever of the flags is given.
func (c *probeCommand) ids(o *opened) (ids []int32, err error) {
	given := 0
	for _, v := range []string{c.IDs, c.IDsFile, c.Prompt} {
		if v != "" {
			given++
		}
	}
	if given != 1 {
		return nil, usagef("one of --ids, --ids-file and --prompt is needed")
	}
	lease := newTextLease(o.rt)
	defer lease.release()
	text := c.IDs
	switch {
	case c.Prompt != "":
		if err := lease.growFor(c.Prompt); err != nil {
			return nil, err
		}
		return o.Tokens(spillway.Request{Prompt: c.Prompt, Raw: true})
	case c.IDsFile != "":
		if text, err = readPromptFile(c.IDsFile, lease); err != nil {
			return nil, err
		}
	}
	return parseIDs(text, o.Layout().Vocab)
}

func parseIDs(text string, vocab int) ([]int32, error) {
	var ids []int32
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' }) {
		id, err := strconv.ParseInt(f, 10, 32)
		if err != nil || id < 0 || id >= int64(vocab) {
			return nil, usagef("%.20q is no token id of this model; they are 0 to %d", f, vocab-1)
		}
		ids = append(ids, int32(id))
	}
	if len(ids) == 0 {
		return nil, usagef("there are no token ids")
	}
	return ids, nil
}

// taps returns the names that --taps means.
func (c *probeCommand) taps(o *opened) ([]string, error) {
	known := o.TapNames()
	if c.Taps == "all" {
		return known, nil
	}
	names := []string{}
	for name := range strings.SplitSeq(c.Taps, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !slices.Contains(known, name) {
			return nil, usagef("%q is no tap of this model; --taps list prints them", name)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// probeResult is what `spillway probe --json` prints.
type probeResult struct {
	Out       string   `json:"out"`
	Positions int      `json:"positions"`
	Greedy    []int32  `json:"greedy"`
	Taps      []string `json:"taps"`
}

func (c *probeCommand) runProbe(ctx context.Context, s *session, o *opened) error {
	ids, err := c.ids(o)
	if err != nil {
		return err
	}
	taps, err := c.taps(o)
	if err != nil {
		return err
	}
	if c.Greedy < 0 || c.Greedy > 0 && o.Embedding() {
		return usagef("--greedy %d: a positive number, and a model that gives text, are needed", c.Greedy)
	}
	m, err := s.startProbe(ctx, o, len(ids), c.Greedy)
	if err != nil {
		return err
	}
	defer m.Close()
	p := newProbed(m, ids, c.Greedy, taps)
	err = p.write(ctx, c.Out)
	if err == nil && s.flags.JSON {
		err = s.printJSON(probeResult{Out: c.Out, Positions: len(ids), Greedy: p.greedy, Taps: taps})
	}
	return err
}

// startProbe starts a model for probes of n tokens. Every position's logits are wanted: many rows at
// a time if the memory does.
func (s *session) startProbe(ctx context.Context, o *opened, n, greedy int) (m *spillway.Model, err error) {
	context := s.flags.Context
	if context == 0 {
		context = n + greedy
	}
	var tooSmall *spillway.TooSmallError
	for _, rows := range []int{64, 8, 1} {
		m, err = s.start(ctx, o, spillway.ModelOptions{Context: context, HeadRows: min(rows, n)})
		if !errors.As(err, &tooSmall) {
			break
		}
	}
	return m, err
}

// writeAside writes a file under a temporary name and gives it its own when it is complete.
func writeAside(path string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".spillway-*")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
