package mem

import (
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/machine"
	"pgregory.net/rapid"
)

// What stays keeps its bytes and its place, and the books are right after every step.
func TestRegionKeepsWhatStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 9 << 20
		ledger := budget.New(most + 1<<20)
		lease, err := ledger.Reserve(budget.Weights, most, "a region")
		if err != nil {
			t.Fatal(err)
		}
		before := Live()
		r, err := NewRegion(lease, most)
		if err != nil {
			t.Fatal(err)
		}
		b := r.Bytes()
		fill := func(i int) byte { return byte(i>>12) ^ byte(i>>20) ^ 0x5A }
		have := 0
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			n := rapid.OneOf(rapid.IntRange(0, most), rapid.SampledFrom([]int{0, HugeSize, 2 * HugeSize, most})).Draw(t, "size")
			if err := r.Resize(n); err != nil {
				t.Fatal(err)
			}
			if r.Len() != Round(n) || Live()-before != int64(Round(n)) {
				t.Fatalf("%d bytes asked, %d are mapped, %d live", n, r.Len(), Live()-before)
			}
			for i := 0; i < min(have, n); i += 4096 {
				if b[i] != fill(i) {
					t.Fatalf("byte %d is %d after a resize from %d to %d", i, b[i], have, n)
				}
			}
			for i := 0; i < r.Len(); i += 4096 {
				b[i] = fill(i)
			}
			have = r.Len()
		}
		if err := r.Free(); err != nil {
			t.Fatal(err)
		}
		if err := r.Free(); err != ErrFreed {
			t.Fatalf("a second free: %v", err)
		}
		if err := lease.Release(); err != nil {
			t.Fatal(err)
		}
	})
}

// A lease that is too small leaves the region as it was.
func TestRegionNeedsALease(t *testing.T) {
	ledger := budget.New(1 << 20)
	lease, err := ledger.Reserve(budget.Weights, 64<<10, "a region")
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRegion(lease, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Resize(32 << 10); err != nil {
		t.Fatal(err)
	}
	if err := r.Resize(128 << 10); err == nil || r.Len() != 32<<10 {
		t.Errorf("more than the lease: %v, %d bytes", err, r.Len())
	}
	if err := r.Resize(2 << 20); err == nil {
		t.Error("more than there are addresses for")
	}
	if err := r.Free(); err != nil {
		t.Error(err)
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

// What was given back is gone by the system's count, also the cut rest of a huge page.
func TestRegionGivesBack(t *testing.T) {
	if _, ok := machine.ReadProcess(); !ok {
		t.Skip("skipped: the system does not count for us")
	}
	const most = 64 << 20
	lease, err := budget.New(most).Reserve(budget.Weights, most, "a region")
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRegion(lease, most)
	if err != nil {
		t.Fatal(err)
	}
	anon := func() int64 {
		p, _ := machine.ReadProcess()
		return p.Anon
	}
	if err := r.Resize(most); err != nil {
		t.Fatal(err)
	}
	clear(r.Bytes())
	full := anon()
	const rest = 3<<20 + 64<<10
	if err := r.Resize(rest); err != nil {
		t.Fatal(err)
	}
	if gone := full - anon(); gone < most-rest-1<<20 {
		t.Errorf("%d bytes are gone of %d", gone, most-rest)
	}
	if err := r.Free(); err != nil {
		t.Error(err)
	}
}
