package kv

import (
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/nn"
)

func shape() Shape {
	return Shape{Type: kernel.CacheF16, Layers: []nn.CacheLayer{{KVHeads: 2, KDim: 8, VDim: 8}, {KVHeads: 1, KDim: 16, VDim: 4}}}
}

func open(t *testing.T, l *budget.Ledger, promise int64) *Cache {
	t.Helper()
	c, err := New(l, shape(), promise)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil || l.Snapshot().Used != 0 {
			t.Errorf("%d bytes left at the end: %v", l.Snapshot().Used, err)
		}
	})
	return c
}

func TestBlocksComeFromThePromiseThenFromTheLedger(t *testing.T) {
	block := int64(shape().BlockBytes())
	l := budget.New(3 * block)
	s := open(t, l, 2*block).NewSequence()
	if err := s.Grow(32); err != nil || l.Snapshot().Used != 2*block {
		t.Fatalf("%d bytes leased for what was promised, want %d: %v", l.Snapshot().Used, 2*block, err)
	}
	if err := s.Grow(33); err != nil || l.Snapshot().Used != 3*block {
		t.Fatalf("%d bytes leased beyond the promise, want %d: %v", l.Snapshot().Used, 3*block, err)
	}
	if err := s.Cut(16); err != nil || l.Snapshot().Used != 2*block {
		t.Fatalf("%d bytes leased after the cut, want %d: %v", l.Snapshot().Used, 2*block, err)
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestGrowWithoutRoomLeavesTheSequenceAlone(t *testing.T) {
	l := budget.New(2 * int64(shape().BlockBytes()))
	s := open(t, l, 0).NewSequence()
	if err := s.Grow(16); err != nil {
		t.Fatal(err)
	}
	if err := s.Grow(64); err == nil || len(s.blocks) != 1 {
		t.Fatalf("grown to %d blocks in a ledger of two: %v", len(s.blocks), err)
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestViewsOfLayersDoNotOverlap(t *testing.T) {
	s := open(t, budget.New(1<<20), 1<<18).NewSequence()
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
