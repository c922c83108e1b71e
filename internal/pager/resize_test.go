package pager_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/layout/layouttest"
	"github.com/spillway/spillway/internal/plan"
	"pgregory.net/rapid"
)

// resize plans for another budget and carries it out.
func (b *bench) resize(t failer, request plan.Request) {
	request.Model = b.model
	p, err := plan.Make(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.ledger.SetLimit(max(request.Budget, b.ledger.Snapshot().Limit)); err != nil {
		t.Fatal(err)
	}
	if err := b.pager.Resize(p.Placement); err != nil {
		t.Fatal(err)
	}
	b.plan = p
	if err := b.ledger.SetLimit(request.Budget); err != nil {
		t.Fatal(err)
	}
	for _, pool := range []budget.Pool{budget.Weights, budget.Staging} {
		if got, want := b.ledger.Snapshot().Pools[pool].Used, p.Pools[pool]; got != want {
			t.Fatalf("%v: %d bytes leased after a resize, %d planned", pool, got, want)
		}
	}
}

// drawBudget is one between the least and more than everything.
func drawBudget(t *rapid.T, m *layout.Model, r *plan.Request) {
	q := *r
	q.Budget, q.Model = 0, m
	_, err := plan.Make(q)
	var small *plan.TooSmallError
	if !errors.As(err, &small) {
		t.Fatal(err)
	}
	all := layouttest.SweptBytes(m) + m.ExpertBytes()
	r.Budget = small.Least + int64(rapid.Float64Range(0, 1.5).Draw(t, "share")*float64(all))
}

// Every byte is right whatever the memory was before, and the ledger holds what was planned.
func TestResize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, request := drawExperts(t)
		if rapid.Bool().Draw(t, "dense") {
			m = layouttest.Draw(t)
			request = draw(t, m)
		}
		b := open(t, m, request, nil)
		defer b.close(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		for range rapid.IntRange(1, 5).Draw(t, "resizes") {
			for range rapid.IntRange(0, 2).Draw(t, "sweeps") {
				b.passAll(t, rng)
			}
			drawBudget(t, m, &request)
			b.resize(t, request)
		}
		b.passAll(t, rng)
	})
}

// passAll is a sweep, and one over experts.
func (b *bench) passAll(t failer, rng *rand.Rand) {
	if err := b.sweep(t, -1); err != nil {
		t.Fatal(err)
	}
	if len(b.model.Experts) > 0 {
		if out, err := b.visitAll(t, rng, -1); err != nil || len(out.failed) > 0 {
			t.Fatal(err, out.failed)
		}
	}
}

// What stays in memory is not read again: with less memory nothing is loaded, and with more only what was not there.
func TestResizeKeeps(t *testing.T) {
	m := layouttest.Shape{Layers: 3, Hidden: 512, FFN: 1024, KVDim: 128, Vocab: 1000}.Model()
	request := plan.Request{Model: m, Align: 512, Budget: 256 << 20}
	b := open(t, m, request, nil)
	defer b.close(t)
	if !b.plan.Resident {
		t.Fatal("not all is in memory")
	}
	if err := b.pager.Preload(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	all := b.pager.Stats().Loaded
	for _, share := range []int64{3, 2, 1} {
		request.Budget = 4<<20 + share*layouttest.SweptBytes(m)/4
		b.resize(t, request)
		if b.plan.Resident {
			t.Fatalf("with a budget of %d nothing is streamed", request.Budget)
		}
		if err := b.pager.Preload(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		if err := b.sweep(t, -1); err != nil {
			t.Fatal(err)
		}
		// What is pinned with less need not have been with more: where a matrix is cut is rounded.
		if again := b.pager.Stats().Loaded - all; again > b.plan.PinnedBytes/32 {
			t.Errorf("with a budget of %d, %d bytes are loaded again", request.Budget, again)
		}
	}
	request.Budget = 4<<20 + 2*layouttest.SweptBytes(m)/4
	pinned, all := b.plan.PinnedBytes, b.pager.Stats().Loaded
	b.resize(t, request)
	if err := b.pager.Preload(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	slack := int64(len(b.plan.Placement.Units)) * (b.plan.Placement.Request + 4096)
	if loaded, more := b.pager.Stats().Loaded-all, b.plan.PinnedBytes-pinned; loaded > more+slack {
		t.Errorf("%d bytes are loaded to pin %d more", loaded, more)
	}
	if err := b.sweep(t, -1); err != nil {
		t.Fatal(err)
	}
}

// Others who need memory get that of slots, at any moment; slots come back when it is free again.
func TestSlotsForOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, request := drawExperts(t)
		all := layouttest.SweptBytes(m) + m.ExpertBytes()
		request.Budget += all
		b := open(t, m, request, nil)
		defer b.close(t)
		if b.plan.Experts.Slots == 0 {
			t.Skip("no slots")
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		want := rapid.Int64Range(1, b.plan.Placement.Experts.Memory()).Draw(t, "asked")
		var others sync.WaitGroup
		others.Go(func() {
			for range 3 {
				lease, err := b.ledger.Reserve(budget.KV, want+b.ledger.Snapshot().Free(), "others")
				var full *budget.NoRoomError
				switch {
				case errors.As(err, &full):
				case err != nil:
					panic(err)
				default:
					if err := lease.Release(); err != nil {
						panic(err)
					}
				}
			}
		})
		for range 4 {
			if out, err := b.visitAll(t, rng, -1); err != nil || len(out.failed) > 0 {
				t.Fatal(err, out.failed)
			}
		}
		others.Wait()
		for range 4 {
			b.passAll(t, rng)
		}
		b.awaitSlots(t)
		if got, planned := b.ledger.Snapshot().Pools[budget.Weights].Used, b.plan.Pools[budget.Weights]; got != planned {
			t.Fatalf("%d bytes of weights when all is free again, %d are planned", got, planned)
		}
	})
}

// Who asks for a little gets it, although slots give back whole huge pages.
func TestSlotsForALittle(t *testing.T) {
	m := fillModel()
	b := open(t, m, plan.Request{Model: m, Align: 512, Budget: 64 << 20}, nil)
	defer b.close(t)
	b.awaitSlots(t)
	if most := b.plan.Placement.Experts.Memory(); most < 4<<20 {
		t.Fatalf("slots are %d bytes", most)
	}
	for _, n := range []int64{1, 4096, b.plan.Placement.Experts.SlotBytes, 2<<20 - 4096, 2<<20 + 4096} {
		lease, err := b.ledger.Reserve(budget.KV, n+b.ledger.Snapshot().Free(), "others")
		if err != nil {
			t.Errorf("%d bytes more than are free: %v", n, err)
			continue
		}
		if err := lease.Release(); err != nil {
			t.Fatal(err)
		}
		b.passAll(t, rand.New(rand.NewPCG(1, 9)))
		b.awaitSlots(t)
	}
}

// A placement that all of the memory was planned for begins with fewer slots while others have some of it.
func TestResizeBesideOthers(t *testing.T) {
	for _, step := range []int64{256 << 10, 64 << 20} {
		steps(t, step)
		for _, share := range []int64{0, 3} { // of the experts that have slots before
			m := fillModel()
			request := plan.Request{Model: m, Align: 512, Budget: 64 << 20}
			b := open(t, m, request, nil)
			few := request
			few.Budget = b.plan.Pools[budget.Weights] + b.plan.Pools[budget.Staging] - m.ExpertBytes()*(4-share)/4
			rng := rand.New(rand.NewPCG(1, 9))
			b.passAll(t, rng)
			b.resize(t, few)
			if got := b.plan.Experts.Slots > 0; got != (share > 0) {
				t.Fatalf("slots of a budget of %d: %+v", few.Budget, b.plan.Experts)
			}
			b.passAll(t, rng)
			all, err := plan.Make(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.ledger.SetLimit(request.Budget); err != nil {
				t.Fatal(err)
			}
			others, err := b.ledger.Reserve(budget.KV, request.Budget-all.Pools[budget.Weights]-all.Pools[budget.Staging]+1<<20, "others")
			if err != nil {
				t.Fatal(err)
			}
			if err := b.pager.Resize(all.Placement); err != nil {
				t.Fatal(err)
			}
			b.plan = all
			b.passAll(t, rng)
			if n, _ := b.pager.Slots(); n >= all.Experts.Slots {
				t.Errorf("%d slots beside others", n)
			}
			if err := others.Release(); err != nil {
				t.Fatal(err)
			}
			b.passAll(t, rng)
			b.awaitSlots(t)
			b.close(t)
		}
	}
}

// A sweep that runs keeps its tiles.
func TestResizeWaitsForSweeps(t *testing.T) {
	m := layouttest.Shape{Layers: 1, Hidden: 256, FFN: 256, KVDim: 128, Vocab: 100}.Model()
	b := open(t, m, plan.Request{Model: m, Align: 512, Budget: 64 << 20}, nil)
	defer b.close(t)
	s, err := b.pager.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.pager.Resize(b.plan.Placement); err == nil {
		t.Error("a resize while a sweep runs")
	}
	s.End()
	if err := b.pager.Resize(b.plan.Placement); err != nil {
		t.Error(err)
	}
}
