package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/vfs"
)

// A probed pass goes to a file as it is computed: logits at once, taps through a file beside it,
// so that memory does not grow with the prompt.
type probed struct {
	m      *spillway.Model
	ids    []int32
	want   int // greedy tokens
	taps   map[string]*spool
	order  []string
	greedy []int32
	dir    string // of the spools
	failed error  // of a tap, which has no way to say so
}

// A spool holds a tap's rows on disk.
type spool struct {
	f     *os.File
	sink  *vfs.Sink
	rows  int
	width int

	nameless bool // it vanishes when it is closed
}

// spoolCache is what all spools together leave in the page cache.
const spoolCache = 1 << 20

func newProbed(m *spillway.Model, ids []int32, greedy int, taps []string) *probed {
	p := &probed{m: m, ids: ids, want: greedy, taps: map[string]*spool{}, order: taps, greedy: []int32{}}
	for _, name := range taps {
		p.taps[name] = &spool{}
	}
	return p
}

// write runs the pass and writes the file.
func (p *probed) write(ctx context.Context, target *vfs.Target) (err error) {
	defer func() { err = errors.Join(err, p.drop()) }()
	if !target.Stream() {
		p.dir = target.Dir() // a drive, more likely than the folder for temporary files
	}
	return target.Write(func(out io.Writer) error {
		w := safetensors.NewWriter(out)
		if p.m.Embedding() {
			return p.writeEmbedding(ctx, w)
		}
		return p.writeLogits(ctx, w)
	})
}

func (p *probed) writeLogits(ctx context.Context, w *safetensors.Writer) error {
	l := p.m.Layout()
	err := w.Add("logits", "F32", len(p.ids), l.Vocab)
	if err == nil && p.want > 0 {
		err = w.Add("greedy", "I64", p.want)
	}
	if err = errors.Join(err, p.begin(w)); err != nil {
		return err
	}
	request := spillway.Probe{IDs: p.ids, Greedy: p.want, Rows: func(_ int, row []float32) error {
		return writeFloats(w, row)
	}}
	p.setTap(&request)
	p.greedy, err = p.m.Probe(ctx, request)
	if err = errors.Join(err, p.failed); err != nil {
		return err
	}
	for _, id := range p.greedy {
		if err := binary.Write(w, binary.LittleEndian, int64(id)); err != nil {
			return err
		}
	}
	return p.finish(w)
}

func (p *probed) writeEmbedding(ctx context.Context, w *safetensors.Writer) error {
	hidden := p.m.Layout().Hidden
	err := errors.Join(w.Add("hidden", "F32", len(p.ids), hidden), w.Add("embedding", "F32", hidden), p.begin(w))
	if err != nil {
		return err
	}
	request := spillway.Probe{IDs: p.ids, Rows: func(_ int, row []float32) error { return writeFloats(w, row) }}
	p.setTap(&request)
	vector, err := p.m.EmbedProbe(ctx, request)
	if err = errors.Join(err, p.failed); err != nil {
		return err
	}
	if err := writeFloats(w, vector); err != nil {
		return err
	}
	return p.finish(w)
}

// begin announces the taps, whose rows are as wide as the model, and writes the header.
func (p *probed) begin(w *safetensors.Writer) error {
	for _, name := range p.order {
		if err := w.Add(name, "F32", len(p.ids), p.m.Layout().Hidden); err != nil {
			return err
		}
	}
	return w.Begin()
}

func (p *probed) setTap(r *spillway.Probe) {
	if len(p.taps) == 0 {
		return
	}
	r.Tap = func(name string, rows, width int, values []float32) {
		t := p.taps[name]
		if t == nil || p.failed != nil || t.rows >= len(p.ids) { // rows of the greedy tokens come too
			return
		}
		p.failed = t.add(p.dir, min(rows, len(p.ids)-t.rows), width, values)
		p.flush()
	}
}

// flush drops the spools from the page cache when there is much of them in it.
func (p *probed) flush() {
	pending := 0
	for _, t := range p.taps {
		if t.sink != nil {
			pending += t.sink.Pending()
		}
	}
	if pending < spoolCache {
		return
	}
	for _, t := range p.taps {
		if t.sink != nil {
			t.sink.Flush()
		}
	}
}

func (t *spool) add(dir string, rows, width int, values []float32) (err error) {
	if t.f == nil {
		if t.f, err = os.CreateTemp(dir, ".spillway-tap-*"); err != nil {
			if failed := (*os.PathError)(nil); errors.As(err, &failed) {
				err = failed.Err
			}
			return fmt.Errorf("a file for a tap in %s: %w", cmp.Or(dir, os.TempDir()), err)
		}
		t.sink = vfs.NewSink(t.f)
		if os.Remove(t.f.Name()) == nil { // where an open file needs no name, nothing can be left behind
			t.nameless = true
		}
	}
	t.rows, t.width = t.rows+rows, width
	return writeFloats(t.sink, values[:rows*width])
}

// finish copies the taps behind the rest.
func (p *probed) finish(w *safetensors.Writer) error {
	for _, name := range p.order {
		t := p.taps[name]
		if t.rows != len(p.ids) || t.width != p.m.Layout().Hidden {
			return fmt.Errorf("tap %s has %d rows of %d values", name, t.rows, t.width)
		}
		t.sink.Flush()
		if _, err := io.Copy(w, vfs.NewDrain(t.f)); err != nil {
			return err
		}
	}
	return w.Close()
}

// drop removes the spools.
func (p *probed) drop() error {
	var all []error
	for _, t := range p.taps {
		if t.f == nil {
			continue
		}
		all = append(all, t.f.Close())
		if !t.nameless {
			all = append(all, os.Remove(t.f.Name()))
		}
	}
	return errors.Join(all...)
}

// writeFloats writes values in little-endian order, with every NaN in its canonical form.
func writeFloats(w io.Writer, values []float32) error {
	var piece [2048]float32
	for len(values) > 0 {
		n := copy(piece[:], values)
		kernel.Canonicalize(piece[:n])
		if err := writeLittle(w, piece[:n]); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}

func writeLittle(w io.Writer, values []float32) error {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		_, err := w.Write(mem.FromFloat32s(values))
		return err
	}
	return binary.Write(w, binary.LittleEndian, values)
}
