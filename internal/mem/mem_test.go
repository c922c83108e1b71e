package mem

import (
	"errors"
	"math"
	"runtime/debug"
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"pgregory.net/rapid"
)

func lease(t testing.TB, l *budget.Ledger, n int) *budget.Lease {
	t.Helper()
	s, err := l.Reserve(budget.Weights, int64(n), "test")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mapped is Map on a lease that has room.
func mapped(t testing.TB, s *budget.Lease, n int) *Buffer {
	t.Helper()
	b, err := Map(s, n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func free(t testing.TB, b *Buffer) {
	t.Helper()
	if err := b.Free(); err != nil {
		t.Fatal(err)
	}
}

func TestMapNeedsALease(t *testing.T) {
	ledger := budget.New(1 << 30)
	before := Live()
	s := lease(t, ledger, 3*pageSize)
	a := mapped(t, s, pageSize+1) // two pages
	b := mapped(t, s, 1)
	if got := Live() - before; got != int64(3*pageSize) {
		t.Errorf("%d bytes live", got)
	}
	if _, err := Map(s, 1); err == nil {
		t.Error("a fourth page was mapped on a lease of three")
	}
	if err := s.Release(); err == nil {
		t.Error("a lease was released under its memory")
	}
	if len(a.Bytes()) != pageSize+1 || cap(a.Bytes()) != pageSize+1 || !IsAligned(a.Bytes(), pageSize) {
		t.Errorf("buffer of %d bytes, capacity %d", len(a.Bytes()), cap(a.Bytes()))
	}
	free(t, a)
	c := mapped(t, s, 2*pageSize)
	free(t, b)
	free(t, c)
	if err := s.Release(); err != nil {
		t.Error(err)
	}
	if _, err := Map(s, 1); !errors.Is(err, budget.ErrReleased) {
		t.Errorf("a released lease gave %v", err)
	}
	if Live() != before || ledger.Snapshot().Used != 0 {
		t.Errorf("%d bytes live, ledger %+v", Live()-before, ledger.Snapshot())
	}
}

func TestImpossibleSizes(t *testing.T) {
	ledger := budget.New(math.MaxInt64)
	s := lease(t, ledger, math.MaxInt-1)
	for _, n := range []int{0, -1, math.MaxInt} {
		if _, err := Map(s, n); err == nil {
			t.Errorf("%d bytes were mapped", n)
		}
		if _, err := New(ledger, budget.KV, n, "x"); err == nil {
			t.Errorf("%d bytes were made", n)
		}
	}
	// Half of the address space: the operating system refuses, and nothing stays occupied.
	if _, err := Map(s, math.MaxInt/2); err == nil {
		t.Error("half of the address space was mapped")
	}
	if err := s.Release(); err != nil {
		t.Error(err)
	}
}

func TestNew(t *testing.T) {
	ledger := budget.New(int64(Round(3<<20)) + 10)
	b, err := New(ledger, budget.KV, 3<<20, "blocks")
	if err != nil {
		t.Fatal(err)
	}
	if got := ledger.Snapshot().Pools[budget.KV].Used; got != 3<<20 {
		t.Errorf("%d bytes charged", got)
	}
	data := b.Bytes()
	for i := 0; i < len(data); i += pageSize / 2 {
		data[i] = byte(i)
	}
	var full *budget.NoRoomError
	if _, err := New(ledger, budget.KV, 100, "more"); !errors.As(err, &full) {
		t.Errorf("over the limit: %v", err)
	}
	free(t, b)
	if got := ledger.Snapshot().Used; got != 0 {
		t.Errorf("%d bytes stay charged", got)
	}
	if b.Bytes() != nil {
		t.Error("a freed buffer has bytes")
	}
}

func TestFreeTwice(t *testing.T) {
	b := mapped(t, lease(t, budget.New(1<<20), pageSize), 1)
	free(t, b)
	defer func() {
		if r := recover(); (r != nil) != invariants {
			t.Errorf("the second free panicked with %v", r)
		}
	}()
	if err := b.Free(); err != ErrFreed {
		t.Errorf("the second free gave %v", err)
	}
}

// A free that fails keeps the bytes charged, and can be tried again.
func TestFailedFree(t *testing.T) {
	s := lease(t, budget.New(1<<20), 2*pageSize)
	b := mapped(t, s, 2*pageSize)
	good, live := b.mapped, Live()
	b.mapped = AlignUp(make([]byte, 4*pageSize), pageSize)[1 : 2*pageSize] // never mapped
	if err := b.Free(); err == nil {
		t.Fatal("memory of the Go heap was unmapped")
	}
	if err := s.Release(); err == nil || Live() != live {
		t.Errorf("after a failed free the lease was released (%v), %d bytes live of %d", err, Live(), live)
	}
	b.mapped = good
	free(t, b)
	if err := s.Release(); err != nil {
		t.Error(err)
	}
}

func TestInvariants(t *testing.T) {
	if !invariants {
		t.Skip("skipped: built without the tag invariants")
	}
	b := mapped(t, lease(t, budget.New(1<<20), pageSize), 100)
	stale := b.Bytes()
	if stale[0] != 0xFF {
		t.Errorf("new memory starts with %x", stale[0])
	}
	free(t, b)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() == nil {
			t.Error("freed memory can still be read")
		}
	}()
	t.Logf("read %x", stale[0])
}

func TestArena(t *testing.T) {
	b := mapped(t, lease(t, budget.New(1<<20), 2*pageSize), 1000)
	defer free(t, b)
	a := NewArena(b)
	x := a.Alloc(3, 1)
	f := a.Alloc(40, 64)
	if len(x) != 3 || cap(x) != 3 || len(f) != 40 || cap(f) != 40 || !IsAligned(f, 64) {
		t.Errorf("%d %d %d %d", len(x), cap(x), len(f), cap(f))
	}
	mark := a.Mark()
	a.Alloc(400, 64)[399] = 7
	if a.Left() != 1000-128-400 {
		t.Errorf("%d bytes left", a.Left())
	}
	a.Reset(mark)
	if a.Left() != 1000-64-40 || a.Peak() != 528 {
		t.Errorf("%d bytes left, peak %d", a.Left(), a.Peak())
	}
	for name, f := range map[string]func(){
		"too much":      func() { a.Alloc(1000, 1) },
		"negative":      func() { a.Alloc(-1, 1) },
		"bad alignment": func() { a.Alloc(1, 3) },
		"overflow":      func() { a.Alloc(math.MaxInt, 1) },
		"wrong mark":    func() { a.Reset(mark + 1) },
	} {
		if !panics(f) {
			t.Errorf("%s did not panic", name)
		}
	}
	a.Reset(0)
	if len(a.Alloc(1000, 64)) != 1000 || a.Left() != 0 {
		t.Error("the whole arena is not to be had after Reset(0)")
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// Pieces that live at the same time never overlap, and stay within the buffer.
func TestArenaPieces(t *testing.T) {
	b := mapped(t, lease(t, budget.New(1<<20), 16*pageSize), 16*pageSize)
	defer free(t, b)
	rapid.Check(t, func(t *rapid.T) {
		a := NewArena(b)
		var marks []Mark
		var pieces [][][]byte // by mark
		pieces = append(pieces, nil)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch n := len(marks); rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				marks, pieces = append(marks, a.Mark()), append(pieces, nil)
			case 1:
				if n > 0 {
					a.Reset(marks[n-1])
					marks, pieces = marks[:n-1], pieces[:n]
				}
			default:
				align := 1 << rapid.IntRange(0, 7).Draw(t, "align")
				p := a.Alloc(rapid.IntRange(0, 1500).Draw(t, "n"), align)
				if !IsAligned(p, align) {
					t.Fatalf("%p is not aligned to %d", p, align)
				}
				pieces[n] = append(pieces[n], p)
			}
		}
		var tag byte
		for _, level := range pieces {
			for _, p := range level {
				tag++
				for i := range p {
					p[i] = tag
				}
			}
		}
		tag = 0
		for _, level := range pieces {
			for _, p := range level {
				tag++
				for _, v := range p {
					if v != tag {
						t.Fatalf("piece %d was overwritten by piece %d", tag, v)
					}
				}
			}
		}
	})
}

func TestViews(t *testing.T) {
	b := []byte{0, 0, 0x80, 0x3F, 0xFF, 0xFF, 0xFF, 0x7F}
	if f := AsFloat32s(b); len(f) != 2 || f[0] != 1 || f[1] == f[1] {
		t.Errorf("%v", f)
	}
	if u := AsUint16s(b); len(u) != 4 || u[1] != 0x3F80 {
		t.Errorf("%v", u)
	}
	if i := As[int16](b); i[2] != -1 {
		t.Errorf("%v", i)
	}
	if f := As[float32](b[3:7]); len(f) != 1 { // anywhere
		t.Errorf("%v", f)
	}
	AsFloat32s(b)[0] = 2 // no copy
	if back := FromFloat32s(AsFloat32s(b)); len(back) != 8 || back[3] != 0x40 {
		t.Errorf("%v", back)
	}
	if len(AsFloat32s(nil)) != 0 || len(FromFloat32s(nil)) != 0 {
		t.Error("nothing is not nothing")
	}
	if !panics(func() { AsFloat32s(b[:7]) }) {
		t.Error("7 bytes were viewed as float32")
	}
}

func TestAlignUp(t *testing.T) {
	b := make([]byte, 300)
	for i := range 64 {
		got := AlignUp(b[i:], 64)
		if !IsAligned(got, 64) || len(got) < 300-i-63 || len(got) > 300-i {
			t.Fatalf("%d: %d bytes", i, len(got))
		}
	}
	odd := AlignUp(make([]byte, 128), 64)[1:3]
	if got := AlignUp(odd, 64); len(got) != 0 {
		t.Errorf("%d aligned bytes of 2", len(got))
	}
}
