// Package synth writes models of published shapes with random weights: for measurements of speed
// and memory, which do not depend on what the weights say.
//
// The same shape, type and seed give the same bytes on every machine, and every number format of
// a shape holds (rounded) the same model.
package synth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// Options says what to write.
type Options struct {
	Shape   string // such as tinyllama-1.1b
	Type    string // a block type of GGUF, a mix such as q4_k_m, or f16, bf16, f32
	Path    string // a GGUF file; a folder in Hugging Face layout if it ends in / or .safetensors
	Seed    uint64
	Layers  int  // 0: the shape's
	Context int  // trained limit in tokens; 0: the shape's
	Force   bool // overwrite what is there

	// How a mixture's experts are chosen, see package trace/skew; all 0: as good as uniformly. Locality is the
	// probability that a token keeps an expert of the one before.
	Zipf, ZipfHead, Locality float64

	Workers int // goroutines; 0: one for each processor

	// Progress, if not nil, hears how many bytes of how many are written.
	Progress func(done, total int64)
}

// A Result says what was written.
type Result struct {
	Path       string `json:"path"`
	Shape      string `json:"shape"`
	Type       string `json:"type"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"` // of weights
	Tensors    int    `json:"tensors"`
	// Replaced are the bytes of weights by the type that they have because their rows are no whole blocks of
	// the type that was asked for.
	Replaced map[string]int64 `json:"replaced_bytes,omitempty"`
}

// A UsageError is an option that does not fit.
type UsageError struct{ error }

// A plan is all that is known before anything is written.
type plan struct {
	Options
	shape   Shape
	mix     mix
	folder  bool
	tensors []tensor
	total   int64 // bytes of weights
}

// Write writes a model. It goes to a temporary name beside the path first, so that a path never
// holds half a model.
func Write(ctx context.Context, o Options) (Result, error) {
	shape, err := LookupShape(o.Shape)
	if err != nil {
		return Result{}, UsageError{err}
	}
	p, err := newPlan(shape, o)
	if err != nil {
		return Result{}, UsageError{err}
	}
	return p.write(ctx)
}

func (p *plan) write(ctx context.Context) (Result, error) {
	target, err := vfs.Aim(p.Path)
	if err != nil {
		return Result{}, err
	}
	if err := p.checkTarget(target); err != nil {
		return Result{}, err
	}
	if err := p.checkSpace(target); err != nil {
		return Result{}, err
	}
	if p.folder {
		err = target.WriteFolder(folderNames, func(dir string) error { return p.writeFolder(ctx, dir) })
	} else {
		err = target.Write(func(w io.Writer) error { return p.gguf(ctx, w) })
	}
	if err != nil {
		return Result{}, err
	}
	return p.result(filepath.Clean(p.Path)), nil
}

func newPlan(shape Shape, o Options) (p *plan, err error) {
	p = &plan{Options: o, folder: isFolder(o.Path)}
	if p.shape, err = shape.resize(o.Layers, o.Context); err != nil {
		return nil, err
	}
	if p.mix, err = lookupType(o.Type); err != nil {
		return nil, err
	}
	if p.folder && !p.mix.base.IsFloat() {
		return nil, fmt.Errorf("type %s is for GGUF files; a folder holds f16, bf16 or f32", p.mix.name)
	}
	if o.Path == "" {
		return nil, errors.New("no path to write to")
	}
	if p.folder && p.shape.oss {
		return nil, fmt.Errorf("%s is written as a GGUF file only", p.shape.Name)
	}
	p.tensors = p.shape.tensors(p.folder)
	if !p.folder {
		p.shape.permute(p.tensors)
	}
	skewed, err := newSkewing(&p.shape, &o)
	if err != nil {
		return nil, err
	}
	for i := range p.tensors {
		p.tensors[i].skew = skewed
	}
	if err := p.mix.assign(&p.shape, p.tensors, !p.folder); err != nil {
		return nil, err
	}
	for i := range p.tensors {
		p.total += p.tensors[i].bytes()
	}
	if p.Workers <= 0 {
		p.Workers = runtime.GOMAXPROCS(0)
	}
	if p.Progress == nil {
		p.Progress = func(int64, int64) {}
	}
	return p, nil
}

func isFolder(path string) bool {
	return strings.HasSuffix(path, ".safetensors") || strings.HasSuffix(path, "/") || strings.HasSuffix(path, string(filepath.Separator))
}

func (p *plan) result(target string) Result {
	r := Result{Path: target, Shape: p.shape.Name, Type: p.mix.name, Bytes: p.total, Tensors: len(p.tensors)}
	for i := range p.tensors {
		r.Parameters += int64(p.tensors[i].rows) * int64(p.tensors[i].cols)
		if t := &p.tensors[i]; t.replaced {
			if r.Replaced == nil {
				r.Replaced = map[string]int64{}
			}
			r.Replaced[t.typ.String()] += t.bytes()
		}
	}
	return r
}

// checkTarget refuses to overwrite without Force, and what this must not replace at all.
func (p *plan) checkTarget(t *vfs.Target) error {
	check := t.CheckFile()
	if p.folder {
		check = t.CheckFolder(folderNames)
	}
	if check == nil && t.Exists() && !p.Force {
		return fmt.Errorf("%s is there already; --force replaces it", filepath.Clean(p.Path))
	}
	return check
}

// spare is what is left on the drive besides the weights: for texts and headers.
const spare = 64 << 20

func (p *plan) checkSpace(t *vfs.Target) error {
	free, ok := machine.FreeDisk(t.Dir())
	if ok && !t.Stream() && free < p.total+spare {
		return fmt.Errorf("%s needs %d MiB, and %s has only %d MiB free", p.Path, (p.total+spare)>>20, t.Dir(), free>>20)
	}
	return nil
}

// folderNames are the files of a folder in Hugging Face layout.
var folderNames = []string{"config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json", weightsName}

const weightsName = "model.safetensors"

func (p *plan) writeFolder(ctx context.Context, dir string) error {
	if err := p.shape.writeTexts(dir, p.dtype()); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, weightsName))
	if err != nil {
		return err
	}
	sink := vfs.NewSink(f)
	if err = p.safetensors(ctx, sink); err == nil {
		sink.Flush()
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (p *plan) gguf(ctx context.Context, out io.Writer) error {
	w := gguf.NewWriter(out)
	for _, e := range metadata(&p.shape, p.mix) {
		if err := w.Set(e.key, e.value); err != nil {
			return err
		}
	}
	for i := range p.tensors {
		if err := w.Add(p.tensors[i].gguf, p.tensors[i].typ, p.tensors[i].dims()...); err != nil {
			return err
		}
	}
	if err := w.Begin(); err != nil {
		return err
	}
	if err := p.generate(ctx, w); err != nil {
		return err
	}
	return w.Close()
}

func (p *plan) safetensors(ctx context.Context, out io.Writer) error {
	w := safetensors.NewWriter(out)
	w.SetMeta("format", "pt")
	for i := range p.tensors {
		if err := w.Add(p.tensors[i].hf, p.tensors[i].typ.String(), p.tensors[i].dims()...); err != nil {
			return err
		}
	}
	if err := w.Begin(); err != nil {
		return err
	}
	if err := p.generate(ctx, w); err != nil {
		return err
	}
	return w.Close()
}

func (p *plan) generate(ctx context.Context, w io.Writer) error {
	var done int64
	return generate(ctx, w, p.Seed, p.tensors, p.Workers, func(n int64) {
		done += n
		p.Progress(done, p.total)
	})
}

// dtype is config.json's name of the type.
func (p *plan) dtype() string {
	return map[quant.Type]string{quant.F32: "float32", quant.F16: "float16", quant.BF16: "bfloat16"}[p.mix.base]
}
