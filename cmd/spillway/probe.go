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
	"github.com/spillway/spillway/internal/vfs"
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
	return s.interrupted(ctx, o.close(c.runWith(ctx, s, o)))
}

func (c *probeCommand) runWith(ctx context.Context, s *session, o *opened) error {
	switch {
	case c.Taps == "list" && s.flags.JSON:
		return s.printJSON(tapList{o.TapNames()})
	case c.Taps == "list":
		_, err := io.WriteString(s.stdout, strings.Join(o.TapNames(), "\n")+"\n")
		return err
	case c.Out == "":
		return usagef("--out is missing: the file to write")
	}
	target, err := c.target(o)
	switch {
	case err != nil:
		return err
	case c.Oracle != "":
		return c.runOracle(ctx, s, o, target)
	}
	return c.runProbe(ctx, s, o, target)
}

// tapList is what `spillway probe --taps list --json` prints.
type tapList struct {
	Taps []string `json:"taps"`
}

// ids returns the tokens of whichever of the flags is given.
func (c *probeCommand) ids(o *opened) (ids []int32, err error) {
	given := 0
	for _, v := range []string{c.IDs, c.IDsFile, c.Prompt} {
		if v != "" {
			given++
		}
	}
	switch {
	case given == 0:
		return nil, usagef("one of --ids, --ids-file and --prompt is needed")
	case given > 1:
		return nil, usagef("only one of --ids, --ids-file and --prompt can be given")
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
		if text, err = readTextFile("ids file", c.IDsFile, lease); err != nil {
			return nil, err
		}
	}
	return parseIDs(text, o.Layout().Vocab)
}

// parseIDs reads token ids, separated by white space or one comma.
func parseIDs(text string, vocab int) ([]int32, error) {
	if strings.TrimSpace(text) == "" {
		return nil, usagef("there are no token ids")
	}
	var ids []int32
	for part := range strings.SplitSeq(text, ",") {
		fields := strings.Fields(part)
		if len(fields) == 0 {
			return nil, usagef("there is a comma without a token id after %s", count(len(ids), "id"))
		}
		for _, f := range fields {
			id, err := strconv.ParseInt(f, 10, 32)
			if err != nil || id < 0 || id >= int64(vocab) {
				return nil, usagef("%.20q is no token id of this model; they are 0 to %d", f, vocab-1)
			}
			ids = append(ids, int32(id))
		}
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

func (c *probeCommand) runProbe(ctx context.Context, s *session, o *opened, target *vfs.Target) error {
	ids, err := c.ids(o)
	if err != nil {
		return err
	}
	taps, err := c.taps(o)
	if err != nil {
		return err
	}
	if c.Greedy < 0 || c.Greedy > mostTokens || c.Greedy > 0 && o.Embedding() {
		return usagef("--greedy %d: a number up to %d, and a model that gives text, are needed", c.Greedy, mostTokens)
	}
	m, err := s.startProbe(ctx, o, len(ids), c.Greedy)
	if err != nil {
		return err
	}
	defer m.Close()
	p := newProbed(m, ids, c.Greedy, taps)
	err = p.write(ctx, target)
	if err == nil && s.flags.JSON {
		err = s.printJSON(probeResult{Out: c.Out, Positions: len(ids), Greedy: p.greedy, Taps: taps})
	} else if err == nil && !s.flags.Quiet {
		s.tellProbed(c.Out, len(ids), len(p.greedy), len(taps))
	}
	return err
}

// tellProbed says what was written.
func (s *session) tellProbed(out string, positions, greedy, taps int) {
	text := fmt.Sprintf("%s: %s", visible(out, 200), count(positions, "position"))
	if greedy > 0 {
		text += ", " + count(greedy, "greedy token")
	}
	if taps > 0 {
		text += ", " + count(taps, "tap")
	}
	fmt.Fprintln(s.stderr, text)
}

// startProbe starts a model for probes of n tokens. Every position's logits are wanted: many rows at
// a time if the memory does.
func (s *session) startProbe(ctx context.Context, o *opened, n, greedy int) (m *spillway.Model, err error) {
	// What is written is in the page cache for a moment, which the kernel counts, too: the plan leaves
	// room for it. After that the lease would be the Go heap's.
	release, noRoom := o.rt.Reserve(outputCache, "the page cache of the output")
	if noRoom == nil {
		defer release()
	}
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
	if noRoom != nil && tooSmall != nil { // the least was counted without the output
		tooSmall.Least += outputCache
	}
	return m, err
}

// outputCache is what the output and the files of the taps keep in the page cache at most, with the
// file system's own notes of them.
const outputCache = 2 << 20

// target looks at where --out leads, which must be none of the files that are read.
func (c *probeCommand) target(o *opened) (*vfs.Target, error) {
	t, err := vfs.Aim(c.Out)
	if err != nil {
		return nil, err
	}
	var inputs []string
	for _, f := range o.Catalog().Files {
		inputs = append(inputs, f.Path)
		if dir := filepath.Dir(f.Path); strings.HasSuffix(f.Path, ".safetensors") { // its neighbours are read too
			entries, err := os.ReadDir(dir)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if strings.HasSuffix(e.Name(), ".json") || strings.HasSuffix(e.Name(), ".model") || strings.HasSuffix(e.Name(), ".jinja") {
					inputs = append(inputs, filepath.Join(dir, e.Name()))
				}
			}
		}
	}
	if c.IDsFile != "" {
		inputs = append(inputs, c.IDsFile)
	}
	if c.Oracle != "" {
		inputs = append(inputs, filepath.Join(c.Oracle, expectedName))
	}
	if same, ok := t.Same(inputs...); ok {
		return nil, usagef("--out %s would replace %s, which is read; another name would do", visible(c.Out, 200), visible(same, 200))
	}
	return t, t.CheckFile()
}
