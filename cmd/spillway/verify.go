package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/report"
)

type verifyCommand struct {
	Model    string `arg:"" help:"GGUF file, folder in Hugging Face layout, or known name."`
	Identity bool   `help:"Prove that budgets, threads, chunks, batches and instruction sets give the same bits."`
	Tensors  bool   `help:"Print every tensor's digest too."`
}

func (*verifyCommand) Help() string {
	return "Reads all bytes and prints their sha256: one line for each file, as sha256sum does. Files that are named by their digest " +
		"(Hugging Face's and Ollama's stores) are compared with it. With --json: {\"files\": [{path, size, sha256, expected}], " +
		"\"tensors\": [{name, type, bytes, sha256}]}. All bundles of a packed file are compared with their digests, and \"packed\": {original, bundles, " +
		"pieces} is added; a tensor's sha256 is the same as in the original.\n\n--identity runs the model under many settings and prints a table of digests of the " +
		"logits; with --json: {\"same\": true, \"rows\": [{budget, threads, chunk, batch, cpu, streamed_bytes, sha256}]}. " +
		"The first rows use the instruction set that SPILLWAY_CPU names, else the best one; the last rows take the other sets, one each.\n\nExamples:\n\n" +
		"  spillway verify model.gguf\n\n  spillway verify model.gguf --identity"
}

// verified is what `spillway verify --json` prints.
type verified struct {
	Files   []verifiedFile   `json:"files"`
	Tensors []verifiedTensor `json:"tensors"`
	Packed  *verifiedPack    `json:"packed,omitempty"`
}

// verifiedPack is what verify says of a packed file beside.
type verifiedPack struct {
	Original string `json:"original"` // identity
	Bundles  int    `json:"bundles"`
	Pieces   int64  `json:"pieces"` // with digests of their own
}

type verifiedFile struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	Expected string `json:"expected,omitempty"` // the digest in the file's name
}

type verifiedTensor struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func (c *verifyCommand) run(s *session) error {
	ctx, stop := s.interruptible()
	defer stop()
	if c.Identity {
		return s.interrupted(ctx, proveIdentity(ctx, s, c.Model))
	}
	cat, err := s.catalog(c.Model)
	if err != nil {
		return err
	}
	s.tellDirect(cat)
	v, err := digests(ctx, s, cat)
	if err == nil {
		err = c.print(s, v)
	}
	return s.interrupted(ctx, errors.Join(err, cat.Close()))
}

// unused names the flags that mean nothing here.
func (c *verifyCommand) unused() []string {
	if c.Identity {
		return []string{"context", "threads"}
	}
	return []string{"context", "threads", "exact", "kv", "policy"}
}

func (c *verifyCommand) print(s *session, v *verified) error {
	if s.flags.JSON {
		if err := s.printJSON(v); err != nil {
			return err
		}
	} else {
		var b strings.Builder
		for _, f := range v.Files {
			fmt.Fprintf(&b, "%s  %s\n", f.SHA256, visible(f.Path, 300))
		}
		if v.Packed != nil && !s.flags.Quiet {
			fmt.Fprintf(s.stderr, "%s hold what was packed\n", count(v.Packed.Bundles, "bundle"))
		}
		if c.Tensors {
			for _, t := range v.Tensors {
				fmt.Fprintf(&b, "%s  %s %s %s\n", t.SHA256, visible(t.Name, 100), t.Type, report.Bytes(t.Bytes))
			}
		}
		if _, err := io.WriteString(s.stdout, b.String()); err != nil {
			return err
		}
	}
	for _, f := range v.Files {
		if f.Expected != "" && f.Expected != f.SHA256 {
			return &checkpoint.FormatError{Path: f.Path, What: "its bytes have the digest " + f.SHA256 + ", its name says " + f.Expected, Hint: "fetch it again"}
		}
	}
	return nil
}

// verifyBuffer is what is read at a time.
const verifyBuffer = 1 << 20

// digests reads every byte of a checkpoint once, and compares those of a packed one with their digests.
func digests(ctx context.Context, s *session, cat *checkpoint.Catalog) (v *verified, err error) {
	memory, free, err := s.borrow(verifyBuffer, "reading a file")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, free()) }()
	bar := s.newProgress("reading")
	defer bar.end()
	var total, done int64
	for _, f := range cat.Files {
		total += f.Size
	}
	v = &verified{}
	for i, f := range cat.Files {
		h := newHasher(ctx, cat, i)
		h.progress = func(n int64) { done += n; bar.set(done, total) }
		sum, err := h.run(memory)
		if err != nil {
			return nil, err
		}
		v.Files = append(v.Files, verifiedFile{Path: f.Path, Size: f.Size, SHA256: sum, Expected: digestInName(f.Path)})
		v.Tensors = append(v.Tensors, h.sums...)
	}
	v.packed(cat)
	return v, nil
}

// packed says how much of a packed file was compared: all of it, or there would be an error.
func (v *verified) packed(cat *checkpoint.Catalog) {
	if cat.Packed == nil {
		return
	}
	v.Packed = &verifiedPack{Original: cat.Packed.Identity, Pieces: cat.Packed.Pieces()}
	for i := range cat.Packed.Groups {
		v.Packed.Bundles += cat.Packed.Groups[i].Count
	}
}

var digestForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:sha256-)?([0-9a-f]{64})$`)
})

// digestInName returns the digest that a store has put into the name of a file, or of what a link
// to it points at.
func digestInName(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if m := digestForm().FindStringSubmatch(filepath.Base(path)); m != nil {
		return m[1]
	}
	return ""
}
