package kv

import (
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/quant"
)

func shape() Shape {
	return Shape{Type: quant.F16, Layers: []nn.CacheLayer{{KVHeads: 2, KDim: 8, VDim: 8}, {KVHeads: 1, KDim: 16, VDim: 4}}}
}

func TestBlocksComeFromTheLedgerAndGoBack(t *testing.T) {
	l := budget.New(1 << 20)
	s := New(l, shape()).NewSequence()
	if err := s.Grow(17); err != nil {
		t.Fatal(err)
	}
	if got, want := l.Snapshot().Used, shape().Bytes(17); got != want || s.Capacity() != 32 {
		t.Fatalf("%d bytes leased for %d positions, want %d for 32", got, s.Capacity(), want)
	}
	if err := s.Cut(16); err != nil || s.Capacity() != 16 {
		t.Fatalf("cut to %d positions: %v", s.Capacity(), err)
	}
	if err := s.Release(); err != nil || l.Snapshot().Used != 0 {
		t.Fatalf("%d bytes left after release: %v", l.Snapshot().Used, err)
	}
}

func TestGrowWithoutRoomLeavesTheSequenceAlone(t *testing.T) {
	l := budget.New(2 * int64(shape().BlockBytes()))
	s := New(l, shape()).NewSequence()
	if err := s.Grow(16); err != nil {
		t.Fatal(err)
	}
	if err := s.Grow(64); err == nil || s.Capacity() != 16 {
		t.Fatalf("grown to %d positions in a ledger of two blocks: %v", s.Capacity(), err)
	}
	if err := s.Release(); err != nil || l.Snapshot().Used != 0 {
		t.Fatalf("%d bytes left after release: %v", l.Snapshot().Used, err)
	}
}

func TestViewsOfLayersDoNotOverlap(t *testing.T) {
	s := New(budget.New(1<<20), shape()).NewSequence()
	defer s.Release()
	if err := s.Grow(20); err != nil {
		t.Fatal(err)
	}
	var mark byte
	for layer, want := range []struct{ k, v int }{{2 * 16 * 16, 2 * 16 * 16}, {16 * 32, 16 * 8}} {
		k, v := s.View(layer, nil, nil)
		if len(k) != 2 || len(k[0]) != want.k || len(v[1]) != want.v {
			t.Fatalf("layer %d: %d blocks of %d and %d bytes, want 2 of %+v", layer, len(k), len(k[0]), len(v[1]), want)
		}
		for _, part := range [][]byte{k[0], v[0], k[1], v[1]} {
			mark++
			for i := range part {
				if part[i] != 0 && !invariantsPoison(part[i]) {
					t.Fatalf("layer %d: byte %d was written before", layer, i)
				}
				part[i] = mark
			}
		}
	}
}

// invariantsPoison reports a byte of fresh memory under the invariants tag.
func invariantsPoison(b byte) bool { return b > 64 }
