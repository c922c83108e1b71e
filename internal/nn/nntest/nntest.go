// Package nntest makes tiny models of random weights in memory, for tests.
package nntest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// Weights makes every weight that a decoder asks for and keeps it in one file. It implements
// nn.Source; there are no biases and no rope factors.
type Weights struct {
	Type   quant.Type           // of matrices
	Values map[string][]float32 // by Key, as the file holds them

	data  []byte
	state uint64
}

// NewWeights returns a source of random weights; the same seed gives the same ones.
func NewWeights(t quant.Type, seed uint64) *Weights {
	return &Weights{Type: t, Values: map[string][]float32{}, state: seed}
}

// next is a random number in [-1, 1) (splitmix64, Steele et al. 2014).
func (w *Weights) next() float64 {
	w.state += 0x9e3779b97f4a7c15
	z := w.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64(int64(z^z>>31)>>10) / (1 << 53)
}

// Key names a weight in Weights.Values.
func Key(layer int, role string) string { return fmt.Sprintf("%d.%s", layer, role) }

// Matrix implements nn.Source.
func (w *Weights) Matrix(layer int, role string, rows, cols int) (*layout.Matrix, bool, error) {
	m := &layout.Matrix{Name: Key(layer, role), Type: w.Type, Rows: rows, Cols: cols, Offset: int64(len(w.data))}
	scale := 3 / math.Sqrt(float64(cols))
	for range rows {
		row := make([]float32, cols)
		for i := range row {
			row[i] = float32(w.next() * scale)
		}
		if err := w.add(m.Name, w.Type, row); err != nil {
			return nil, false, err
		}
	}
	return m, true, nil
}

// Stack implements nn.Source. Values of all experts follow each other; gate and up are never merged.
func (w *Weights) Stack(layer int, role string, experts, rows, cols int) (*layout.Stack, bool, error) {
	if role == "ffn.experts.gate_up" {
		return nil, false, nil
	}
	m, _, err := w.Matrix(layer, role, experts*rows, cols)
	if err != nil {
		return nil, false, err
	}
	s := &layout.Stack{Name: m.Name, Type: m.Type, Rows: rows, Cols: cols, At: make([]layout.Place, experts)}
	for e := range s.At {
		s.At[e].Offset = m.Offset + int64(e)*s.Bytes()
	}
	return s, true, nil
}

// Vector implements nn.Source.
func (w *Weights) Vector(layer int, role string, n int) (*layout.Vector, bool, error) {
	if strings.HasSuffix(role, ".bias") {
		return nil, false, nil
	}
	v := &layout.Vector{Name: Key(layer, role), Type: quant.F32, Len: n, Offset: int64(len(w.data))}
	row := make([]float32, n)
	for i := range row {
		row[i] = 1 + float32(w.next()/2)
	}
	return v, true, w.add(v.Name, quant.F32, row)
}

// add appends a row to the file and remembers its values as they are read back.
func (w *Weights) add(name string, t quant.Type, row []float32) error {
	raw, back := make([]byte, t.RowBytes(len(row))), make([]float32, len(row))
	if err := errors.Join(quant.EncodeRow(t, raw, row), quant.DecodeRow(t, back, raw)); err != nil {
		return err
	}
	w.data, w.Values[name] = append(w.data, raw...), append(w.Values[name], back...)
	return nil
}

// Tiny is a decoder of two layers with grouped-query attention; rope may be nil.
func Tiny(rope *nn.Rope) nn.Decoder {
	norm := nn.RMS{Eps: 1e-5}
	return nn.Decoder{
		Family: "tiny", Hidden: 64, Vocab: 96, Context: 512,
		Blocks: nn.Repeat(2, func(int) nn.Block {
			return nn.Block{
				Norm: norm, Mixer: nn.Attention{Heads: 4, KVHeads: 2, HeadDim: 16, Rope: rope},
				FFNNorm: norm, FFN: nn.GatedMLP{Width: 96},
			}
		}),
		Norm: norm,
	}
}

// Options shape a model that runs.
type Options struct {
	Rows, HeadRows, Context int // of the arena; 0 is 64, 64 and 512
	Threads                 int // 0 is 2
	Exact                   bool
	Wrap                    func(vfs.File) vfs.File // makes the weights' file fail; nil for none
}

// Machine is a model with what it runs on.
type Machine struct {
	Model  *nn.Model
	Env    *nn.Env
	Ledger *budget.Ledger
}

// Start binds d to w and makes it ready to run, in an arena that is not a byte larger than planned. At
// the end of the test everything is freed, and the ledger must be empty.
func Start(t testing.TB, d nn.Decoder, w *Weights, o Options) *Machine {
	t.Helper()
	o.Rows, o.HeadRows, o.Context, o.Threads = or(o.Rows, 64), or(o.HeadRows, 64), or(o.Context, 512), or(o.Threads, 2)
	model, err := nn.Bind(d, w)
	if err != nil {
		t.Fatal(err)
	}
	scratch := nn.Scratch{Rows: o.Rows, HeadRows: o.HeadRows, Context: o.Context, Threads: o.Threads, Exact: o.Exact}
	p, err := plan.Make(plan.Request{
		Model: model.Layout, Budget: 64 << 20, Context: o.Context, HeadRows: o.HeadRows, MaxChunk: o.Rows,
		FixedScratch: model.PlanScratch(scratch),
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{Model: model, Ledger: budget.New(64 << 20)}
	arena, err := mem.New(m.Ledger, budget.Activation, model.ScratchBytes(scratch), "scratch")
	if err != nil {
		t.Fatal(err)
	}
	file := vfs.Bytes("tiny", w.data)
	if o.Wrap != nil {
		file = o.Wrap(file)
	}
	pages, err := pager.Open(context.Background(), pager.Config{Model: model.Layout, Placement: p.Placement, Files: []vfs.File{file}, Ledger: m.Ledger})
	if err != nil {
		t.Fatal(err)
	}
	pool := kernel.NewPool(o.Threads)
	m.Env = &nn.Env{Pool: pool, Pager: pages, Arena: mem.NewArena(arena), Exact: o.Exact, Context: o.Context}
	t.Cleanup(func() {
		pool.Close()
		if err := errors.Join(pages.Close(), arena.Free()); err != nil {
			t.Error(err)
		}
		if used := m.Ledger.Snapshot().Used; used != 0 {
			t.Errorf("%d bytes are still leased", used)
		}
	})
	return m
}

func or(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}
