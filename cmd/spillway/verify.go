package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/report"
	"github.com/spillway/spillway/internal/vfs"
)

type verifyCommand struct {
	Model    string `arg:"" help:"GGUF file, folder in Hugging Face layout, or known name."`
	Identity bool   `help:"Prove that budgets, threads, chunks, batches and instruction sets give the same bits."`
	Tensors  bool   `help:"Print every tensor's digest too."`
}

func (*verifyCommand) Help() string {
	return "Reads all bytes and prints their sha256: one line for each file, as sha256sum does. Files that are named by their digest " +
		"(Hugging Face's and Ollama's stores) are compared with it. With --json: {\"files\": [{path, size, sha256, expected}], " +
		"\"tensors\": [{name, type, bytes, sha256}]}.\n\n--identity runs the model under many settings and prints a table of digests of the " +
		"logits; with --json: {\"same\": true, \"rows\": [{budget, threads, chunk, batch, cpu, streamed_bytes, sha256}]}. " +
		"The first rows use the instruction set that SPILLWAY_CPU names, else the best one; the last rows take the other sets, one each.\n\nExamples:\n\n" +
		"  spillway verify model.gguf\n\n  spillway verify model.gguf --identity"
}

// verified is what `spillway verify --json` prints.
type verified struct {
	Files   []verifiedFile   `json:"files"`
	Tensors []verifiedTensor `json:"tensors"`
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
	return []string{"context", "threads", "exact", "kv"}
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

// digests reads every byte of a checkpoint once.
func digests(ctx context.Context, s *session, cat *checkpoint.Catalog) (v *verified, err error) {
	rt, err := s.runtime()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	release, err := rt.Reserve(verifyBuffer, "reads")
	if err != nil {
		return nil, enough(err, verifyBuffer, "reading a file")
	}
	defer release()
	buf, err := mem.New(budget.New(verifyBuffer), budget.Staging, verifyBuffer, "reads")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	bar := s.newProgress("reading")
	defer bar.end()
	var total, done int64
	for _, f := range cat.Files {
		total += f.Size
	}
	v = &verified{}
	for i, f := range cat.Files {
		h := &hasher{ctx: ctx, file: f.File, tensors: tensorsOf(cat, i), progress: func(n int64) { done += n; bar.set(done, total) }}
		sum, err := h.run(buf.Bytes())
		if err != nil {
			return nil, err
		}
		v.Files = append(v.Files, verifiedFile{Path: f.Path, Size: f.Size, SHA256: sum, Expected: digestInName(f.Path)})
		v.Tensors = append(v.Tensors, h.sums...)
	}
	return v, nil
}

// tensorsOf returns a file's tensors in the order of their data.
func tensorsOf(cat *checkpoint.Catalog, file int) []checkpoint.Tensor {
	var all []checkpoint.Tensor
	for _, t := range cat.Tensors {
		if t.File == file {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b checkpoint.Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	return all
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

// A hasher digests a file and its tensors in one pass.
type hasher struct {
	ctx      context.Context
	file     vfs.File
	tensors  []checkpoint.Tensor // that are not complete, by offset
	progress func(n int64)

	at     int64 // position in the file
	tensor hash.Hash
	sums   []verifiedTensor
}

func (h *hasher) run(buf []byte) (string, error) {
	r, err := vfs.NewReader(h.file, 0, h.file.Size(), buf)
	if err != nil {
		return "", err
	}
	whole, piece := sha256.New(), make([]byte, 32<<10)
	h.tensor = sha256.New()
	for {
		if err := h.ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(piece)
		whole.Write(piece[:n])
		h.add(piece[:n])
		h.progress(int64(n))
		if errors.Is(err, io.EOF) {
			h.add(nil)
			return hex.EncodeToString(whole.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// add passes the tensors' parts of the file's next bytes on.
func (h *hasher) add(b []byte) {
	for len(h.tensors) > 0 {
		t := &h.tensors[0]
		skip := min(max(t.Offset-h.at, 0), int64(len(b)))
		b, h.at = b[skip:], h.at+skip
		n := min(max(t.Offset+t.Bytes-h.at, 0), int64(len(b)))
		h.tensor.Write(b[:n])
		b, h.at = b[n:], h.at+n
		if h.at < t.Offset+t.Bytes {
			return
		}
		h.sums = append(h.sums, verifiedTensor{t.Name, t.DType, t.Bytes, hex.EncodeToString(h.tensor.Sum(nil))})
		h.tensor.Reset()
		h.tensors = h.tensors[1:]
	}
	h.at += int64(len(b))
}
