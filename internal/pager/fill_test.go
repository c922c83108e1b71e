package pager_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/layout/layouttest"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/policy"
	"github.com/spillway/spillway/internal/vfs"
	"pgregory.net/rapid"
)

// eventually waits until something is so.
func eventually(t failer, what string, so func() bool) {
	for range 20000 {
		if so() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// awaitSlots waits until all slots that are planned have memory.
func (b *bench) awaitSlots(t failer) {
	eventually(t, "all slots", func() bool { n, growing := b.pager.Slots(); return n == b.plan.Experts.Slots && !growing })
}

// awaitFull waits until no slot is empty, or every expert is in memory.
func (b *bench) awaitFull(t failer) {
	all := b.plan.Experts.Layers * b.plan.Experts.Count
	eventually(t, "slots are full", func() bool {
		held, reading, empty := b.pager.Full()
		return reading == 0 && (empty == 0 || held == all)
	})
}

// steps lets slots come in steps of a few.
func steps(t *testing.T, bytes int64) {
	before := pager.SetGrowStep(bytes)
	t.Cleanup(func() { pager.SetGrowStep(before) })
}

// offsets notes where reads begin.
type offsets struct {
	vfs.File
	mu   *sync.Mutex
	list *[]int64
}

func (f offsets) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	*f.list = append(*f.list, off)
	f.mu.Unlock()
	return f.File.ReadAt(p, off)
}

// fillModel has experts of three matrices, each matrix of all experts in one tensor as GGUF has it.
func fillModel() *layout.Model {
	m := layouttest.Shape{Layers: 4, Hidden: 256, FFN: 256, KVDim: 128, Vocab: 256}.Model()
	addExperts(m, 16, 2)
	return m
}

// Where every expert has a slot all are read before anybody asks, each once, and layers wait for nothing then. No first use is a hit.
func TestFillAll(t *testing.T) {
	steps(t, 256<<10)
	m := fillModel()
	b := open(t, m, plan.Request{Model: m, Align: 512, Budget: 64 << 20}, nil)
	defer b.close(t)
	if !b.plan.Experts.Resident() {
		t.Fatalf("not all experts have slots: %+v", b.plan.Experts)
	}
	b.awaitSlots(t)
	b.awaitFull(t)
	if err := b.pager.Preload(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	before := b.pager.Stats()
	if before.Filled < m.ExpertBytes() || before.Filled > m.ExpertBytes()*9/8 {
		t.Errorf("%d bytes were read for %d of experts", before.Filled, m.ExpertBytes())
	}
	rng := rand.New(rand.NewPCG(1, 9))
	for range 30 {
		if out, err := b.visitAll(t, rng, -1); err != nil || len(out.failed) > 0 {
			t.Fatal(err, out.failed)
		}
	}
	s := b.pager.Stats()
	if s.Read != before.Read {
		t.Errorf("%d bytes were read again", s.Read-before.Read)
	}
	if all := int64(b.plan.Experts.Layers * b.plan.Experts.Count); s.Experts-s.ExpertHits != all {
		t.Errorf("%d experts were no hit, there are %d", s.Experts-s.ExpertHits, all)
	}
}

// The reads that fill a layer's slots are in the order of the file.
func TestFillOrder(t *testing.T) {
	m := fillModel()
	var mu sync.Mutex
	var list []int64
	b := open(t, m, plan.Request{Model: m, Align: 512, Budget: 64 << 20}, func(f vfs.File) vfs.File { return offsets{f, &mu, &list} })
	defer b.close(t)
	b.awaitFull(t)
	mu.Lock()
	defer mu.Unlock()
	first := m.Experts[0].Stacks[0].At[0].Offset
	list = slices.DeleteFunc(list, func(off int64) bool { return off < first })
	// Readers take them in order, so that when one begins the others alone can have earlier ones that have not begun.
	for i, off := range list {
		late := 0
		for _, next := range list[i+1:] {
			if next < off {
				late++
			}
		}
		if most := b.plan.Placement.Readers - 1; late > most {
			t.Fatalf("%d reads before %d began after it, more than the other readers (%d) have", late, off, most)
		}
	}
}

// Where fewer have slots, empty ones are filled, nothing is displaced, and what a layer asks for comes first.
func TestFillEmpty(t *testing.T) {
	steps(t, 512<<10)
	m := fillModel()
	var reads atomic.Int64
	b := open(t, m, plan.Request{Model: m, Align: 512, Budget: 4<<20 + layouttest.SweptBytes(m) + m.ExpertBytes()/2}, func(f vfs.File) vfs.File {
		return faulty{f, func() bool { reads.Add(1); return false }}
	})
	defer b.close(t)
	if n := b.plan.Experts.Slots; n < 16 || b.plan.Experts.Resident() {
		t.Fatalf("%d slots", n)
	}
	b.awaitSlots(t)
	b.awaitFull(t)
	if err := b.pager.Preload(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if held, _, empty := b.pager.Full(); empty != 0 || held != b.plan.Experts.Slots {
		t.Errorf("%d experts in %d slots, %d of them empty", held, b.plan.Experts.Slots, empty)
	}
	before := b.pager.Stats()
	time.Sleep(20 * time.Millisecond)
	if s := b.pager.Stats(); s.Requests != before.Requests {
		t.Errorf("%d reads although no slot is empty", s.Requests-before.Requests)
	}
	rng := rand.New(rand.NewPCG(1, 9))
	for range 10 {
		if out, err := b.visitAll(t, rng, -1); err != nil || len(out.failed) > 0 {
			t.Fatal(err, out.failed)
		}
	}
	if s := b.pager.Stats(); s.Filled != before.Filled {
		t.Errorf("%d bytes filled slots that were not empty", s.Filled-before.Filled)
	}
}

// Where every expert has a slot, the first sweep begins when all are there; it ends with its context.
func TestFirstSweepWaits(t *testing.T) {
	m := fillModel()
	gate := make(chan struct{})
	first := m.Experts[0].Stacks[0].At[0].Offset
	b := open(t, m, plan.Request{Model: m, Align: 512, Budget: 64 << 20}, func(f vfs.File) vfs.File {
		return gated{f, func(off int64) {
			if off >= first {
				<-gate
			}
		}}
	})
	defer b.close(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if _, err := b.pager.Begin(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a sweep began before the experts were there, or failed otherwise: %v", err)
	}
	close(gate)
	if out, err := b.visitAll(t, rand.New(rand.NewPCG(1, 9)), -1); err != nil || len(out.failed) > 0 {
		t.Fatal(err, out.failed)
	}
	s := b.pager.Stats()
	if read := s.Read - s.Loaded - s.Looked; read != s.Filled || read > m.ExpertBytes()*9/8 {
		t.Errorf("%d bytes were read for %d of experts, %d of them before a layer asked", read, m.ExpertBytes(), s.Filled)
	}
}

// A fill that is under way when a layer asks for the expert is taken over: it is read once.
func TestFillIsTakenOver(t *testing.T) {
	m := fillModel()
	gate := make(chan struct{})
	first := m.Experts[0].Stacks[0].At[0].Offset
	b := open(t, m, plan.Request{Model: m, Align: 512, Budget: 4<<20 + layouttest.SweptBytes(m) + m.ExpertBytes()/2}, func(f vfs.File) vfs.File {
		return gated{f, func(off int64) {
			if off >= first {
				<-gate
			}
		}}
	})
	defer b.close(t)
	if n := b.plan.Experts.Slots; n < 32 || b.plan.Experts.Resident() {
		t.Fatalf("%d slots", n)
	}
	eventually(t, "fills begin", func() bool { _, reading, _ := b.pager.Full(); return reading > 0 })
	s, err := b.pager.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	v := policy.Visit{Decode: 1}
	for e := range 16 {
		v.Demands = append(v.Demands, policy.Demand{Expert: int32(e), Decode: 1})
	}
	if err := s.Ask(0, v); err != nil {
		t.Fatal(err)
	}
	close(gate)
	for some, err := range s.Experts(16) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range some {
			if err := b.expert(t, e, 0, int(v.Demands[e.Demand].Expert)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.End()
	b.awaitFull(t)
	st := b.pager.Stats()
	if read := st.Read - st.Loaded - st.Looked; read > b.plan.Placement.Experts.Memory() {
		t.Errorf("%d bytes were read into slots of %d", read, b.plan.Placement.Experts.Memory())
	}
}

// gated calls before a read.
type gated struct {
	vfs.File
	before func(off int64)
}

func (f gated) ReadAt(p []byte, off int64) (int, error) {
	f.before(off)
	return f.File.ReadAt(p, off)
}

// A fill that fails ends fills, and nothing else: who asks gets the expert, or hears of it.
func TestFillFails(t *testing.T) {
	m := fillModel()
	first := m.Experts[0].Stacks[0].At[0].Offset
	var failing atomic.Bool
	failing.Store(true)
	b := open(t, m, plan.Request{Model: m, Align: 512, Budget: 64 << 20}, func(f vfs.File) vfs.File { return broken{f, first, &failing} })
	defer b.close(t)
	eventually(t, "fills end", func() bool { _, reading, _ := b.pager.Full(); return reading == 0 && b.pager.Stats().Requests > 0 })
	rng := rand.New(rand.NewPCG(1, 9))
	out, err := b.visitAll(t, rng, -1)
	if err != nil || len(out.failed) == 0 || !errors.Is(out.failed[0], syscall.EIO) {
		t.Fatalf("while the drive fails: %v, %v", err, out.failed)
	}
	failing.Store(false)
	for range 3 {
		if out, err := b.visitAll(t, rng, -1); err != nil || len(out.failed) > 0 {
			t.Fatalf("after the fault: %v, %v", err, out.failed)
		}
	}
}

// broken fails behind an offset.
type broken struct {
	vfs.File
	from    int64
	failing *atomic.Bool
}

func (f broken) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.from && f.failing.Load() {
		return 0, syscall.EIO
	}
	return f.File.ReadAt(p, off)
}

// Every byte is right and the ledger ends where it began while slots come in small steps, are filled, lent to others and planned anew.
func TestFillsBesideAll(t *testing.T) {
	steps(t, 32<<10)
	rapid.Check(t, func(t *rapid.T) {
		m, request := drawExperts(t)
		seed := rapid.Uint64().Draw(t, "seed")
		var reads atomic.Uint64
		delay := vfs.Fault(nil, vfs.Plan{Delay: func(int64) time.Duration {
			return time.Duration(rand.New(rand.NewPCG(seed, reads.Add(1))).IntN(200)) * time.Microsecond
		}})
		b := open(t, m, request, delay.Wrap)
		defer b.close(t)
		rng := rand.New(rand.NewPCG(seed, 7))
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			switch rapid.IntRange(0, 3).Draw(t, "turn") {
			case 0:
				drawBudget(t, m, &request)
				b.resize(t, request)
			case 1:
				b.lend(t, rapid.Float64Range(0, 1).Draw(t, "lent"))
			case 2:
				time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
			default:
				b.passAll(t, rng)
			}
		}
		b.passAll(t, rng)
	})
}

// lend takes part of the memory of slots for a moment.
func (b *bench) lend(t failer, share float64) {
	want := int64(share * float64(b.plan.Placement.Experts.Memory()))
	lease, err := b.ledger.Reserve(budget.KV, want+b.ledger.Snapshot().Free(), "others")
	if err != nil {
		return // too much
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
}
