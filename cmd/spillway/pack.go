package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/pack"
	"github.com/spillway/spillway/internal/models"
	"github.com/spillway/spillway/internal/packer"
	"github.com/spillway/spillway/internal/report"
)

type packCommand struct {
	Model string `arg:"" help:"GGUF file, folder in Hugging Face layout, or known name."`
	Out   string `help:"File to write. Default: the model's name with .spill in place of its ending, as olmoe.spill for olmoe.gguf, in the current folder." placeholder:"PATH"`
	Force bool   `help:"Replace what is at PATH, and begin anew where another pack was interrupted."`
}

func (*packCommand) Help() string {
	return "Writes a copy in which what is needed together lies together: a layer's trunk, and each expert with all its matrices, is one " +
		"aligned range of the file, and comes with one read where it took several. Results are the same bits. The copy has the tokenizer, " +
		"the templates and the configuration inside, and digests of all of it, which verify compares.\n\n" +
		"An interrupted pack is continued by the same command. It does not begin unless the drive has room for all of it.\n\n" +
		"With --json: {\"path\", \"bytes\", \"resumed_bytes\", \"weight_bytes\", \"bundles\", \"expert_bundles\", \"identity\", \"seconds\"}; identity is " +
		"that of the original, as inspect prints it.\n\nExample:\n\n  spillway pack olmoe.gguf --out olmoe.spill"
}

// unused names the flags that mean nothing here.
func (*packCommand) unused() []string { return []string{"context", "threads", "exact", "kv", "policy"} }

// packedModel is what `spillway pack --json` prints.
type packedModel struct {
	Path     string  `json:"path"`
	Bytes    int64   `json:"bytes"`
	Resumed  int64   `json:"resumed_bytes"` // that an earlier command had written
	Weights  int64   `json:"weight_bytes"`
	Bundles  int     `json:"bundles"`
	Experts  int     `json:"expert_bundles"` // of them
	Identity string  `json:"identity"`       // of the original
	Seconds  float64 `json:"seconds"`
}

func (c *packCommand) run(s *session) error {
	ctx, stop := s.interruptible()
	defer stop()
	path, err := s.resolve(c.Model)
	if err != nil {
		return err
	}
	out := c.Out
	switch {
	case out == "" && path == "":
		out = embeddedName + pack.Extension
	case out == "":
		base := filepath.Base(filepath.Clean(string(path)))
		out = strings.TrimSuffix(base, filepath.Ext(base)) + pack.Extension
	}
	cat, err := path.catalog()
	if err != nil {
		return err
	}
	s.tellDirect(cat)
	result, err := c.pack(ctx, s, cat, out)
	if err = s.interrupted(ctx, errors.Join(err, cat.Close())); err != nil {
		if stopped(ctx) != nil {
			s.tell("the same command continues where this one ended: " + visible(pack.Partial(out), 200))
		}
		return err
	}
	switch {
	case s.flags.JSON:
		return s.printJSON(result)
	case !s.flags.Quiet:
		fmt.Fprintf(s.stderr, "%s: %s in %s, %s\n", visible(out, 200), report.Bytes(result.Bytes), count(result.Bundles, "bundle"), report.Seconds(result.Seconds))
	}
	return nil
}

func (c *packCommand) pack(ctx context.Context, s *session, cat *checkpoint.Catalog, out string) (r packedModel, err error) {
	begin := time.Now()
	if cat.Packed != nil {
		return r, fmt.Errorf("%s is packed already", visible(cat.Path, 200))
	}
	m, err := models.Describe(cat)
	if err != nil {
		return r, err
	}
	p, err := packer.New(ctx, cat, m.Layout)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	memory, free, err := s.borrow(pack.WriteMemory(p.Align()), "copying a model")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, free()) }()
	bar := s.newProgress("packing")
	defer bar.end()
	w, err := pack.Write(ctx, pack.Job{Path: out, Manifest: p.Manifest, Parts: p.Parts, Memory: memory, Force: c.Force, Progress: bar.set})
	r = packedModel{Path: out, Bytes: w.Bytes, Resumed: w.Resumed, Weights: cat.Bytes(), Identity: p.Manifest.Identity, Seconds: time.Since(begin).Seconds()}
	for _, g := range p.Manifest.Groups {
		r.Bundles += g.Count
		if strings.HasSuffix(g.Name, ".experts") {
			r.Experts += g.Count
		}
	}
	return r, err
}
