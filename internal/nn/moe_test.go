package nn_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/nn/nntest"
	"github.com/spillway/spillway/internal/policy"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// mixed is a decoder whose layers have experts.
func mixed(m nn.MoE) nn.Decoder {
	d := nntest.Tiny(rope())
	for i := range d.Blocks {
		d.Blocks[i].FFN = m
	}
	return d
}

// badRange fails reads that touch a range of a file.
type badRange struct {
	vfs.File
	from, to *int64
}

func (f badRange) ReadAt(p []byte, off int64) (int, error) {
	if off < *f.to && off+int64(len(p)) > *f.from {
		return 0, syscall.EIO
	}
	return f.File.ReadAt(p, off)
}

// An expert that cannot be read ends the sequences that chose it; the others do not notice, and later all is well.
func TestLostExpertEndsItsSequences(t *testing.T) {
	d := mixed(nn.MoE{Experts: 32, Used: 2, Width: 32, Weights: nn.SoftmaxUnit})
	ids := [][]int32{tokens(1, 3), tokens(2, 3)}
	weights := func() *nntest.Weights { return nntest.NewWeights(quant.F32, 5) }
	calm := start(t, d, weights(), true)
	want := calm.forward(calm.prompt(ids[0]), calm.prompt(ids[1]))
	layer := calm.Model.Layout.Experts[1]
	lost := aloneIn(t, calm, ids)
	from := layer.Stacks[2].At[lost].Offset
	to := from + layer.Stacks[2].Bytes()

	w := weights()
	m := nntest.Start(t, d, w, nntest.Options{Exact: true, Wrap: func(f vfs.File) vfs.File { return badRange{f, &from, &to} }})
	b := &bench{m, t, calm.cache}
	first, second := b.prompt(ids[0]), b.prompt(ids[1])
	got := b.forward(first, second)
	if !errors.Is(first.Err, syscall.EIO) || !strings.Contains(first.Err.Error(), "expert") || second.Err != nil {
		t.Fatalf("the errors are %v and %v", first.Err, second.Err)
	}
	if !sameBits(got[1], want[1]) {
		t.Error("the other sequence has other logits")
	}
	from, to = 0, 0
	if got := b.forward(b.prompt(ids[0]), b.prompt(ids[1])); !sameBits(got[0], want[0]) || !sameBits(got[1], want[1]) {
		t.Error("after the fault the logits are others")
	}
}

// aloneIn is an expert of the second layer that only the first prompt chooses.
func aloneIn(t *testing.T, b *bench, ids [][]int32) int32 {
	t.Helper()
	chosen := make([][]int32, len(ids))
	for i := range ids {
		b.Env.Routing = func(layer int, _ policy.Visit, ids []int32) {
			if layer == 1 {
				chosen[i] = slices.Clone(ids)
			}
		}
		b.forward(b.prompt(ids[i]))
	}
	b.Env.Routing = nil
	for _, e := range chosen[0] {
		if !slices.Contains(chosen[1], e) {
			return e
		}
	}
	t.Fatal("both prompts choose the same experts")
	return 0
}

// A visit counts rows of answers and of prompts, each expert once, those of most answer rows first.
func TestVisits(t *testing.T) {
	b := start(t, mixed(nn.MoE{Experts: 6, Used: 2, Width: 32}), nntest.NewWeights(quant.F32, 3), true)
	var visits []policy.Visit
	var choices [][]int32
	b.Env.Routing = func(_ int, v policy.Visit, ids []int32) {
		v.Demands = slices.Clone(v.Demands)
		visits, choices = append(visits, v), append(choices, slices.Clone(ids))
	}
	prompt, answer := b.prompt(tokens(1, 9)), b.prompt(tokens(2, 1))
	prompt.Prompt = true
	b.forward(prompt, answer)
	if len(visits) != 2 {
		t.Fatalf("%d visits", len(visits))
	}
	for i, v := range visits {
		count := map[int32]policy.Demand{}
		for k, e := range choices[i] {
			d := count[e]
			if d.Expert = e; k/2 > 0 { // answers come first
				d.Prefill++
			} else {
				d.Decode++
			}
			count[e] = d
		}
		if v.Prefill != 9 || v.Decode != 1 || len(v.Demands) != len(count) {
			t.Errorf("visit %+v", v)
		}
		for k, d := range v.Demands {
			if d != count[d.Expert] {
				t.Errorf("demand %+v, want %+v", d, count[d.Expert])
			}
			if k > 0 && (d.Decode > v.Demands[k-1].Decode || d.Decode == v.Demands[k-1].Decode && d.Prefill > v.Demands[k-1].Prefill) {
				t.Errorf("demand %d comes too late", k)
			}
		}
	}
}
