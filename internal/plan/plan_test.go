package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/layout/layouttest"
	"github.com/spillway/spillway/internal/machine"
	"pgregory.net/rapid"
)

// requestFor is a request as the runtime makes it.
func requestFor(m *layout.Model, limit int64) Request {
	return Request{
		Model: m, Budget: limit, Runtime: 20 * machine.MiB, KVTokenBytes: 2 * m.KVValuesPerToken,
		Context: 512, KVBlockTokens: 32, FixedScratch: 256 << 10, Align: 512,
	}
}

func leastOf(t testing.TB, r Request) int64 {
	t.Helper()
	r.Budget = 0
	_, err := Make(r)
	var small *TooSmallError
	if !errors.As(err, &small) {
		t.Fatalf("a budget of 0 gives %v", err)
	}
	return small.Least
}

func TestLeastOfKnownShapes(t *testing.T) {
	for name, c := range map[string]struct {
		shape layouttest.Shape
		least int64 // without KV
	}{
		"smollm2":    {layouttest.SmolLM2, 48*machine.MiB - 512*2*2*30*192},
		"tinyllama":  {layouttest.TinyLlama, 64 * machine.MiB},
		"llama-7b":   {layouttest.Llama7B, 160 * machine.MiB},
		"wide vocab": {layouttest.Shape{Layers: 2, Hidden: 1024, FFN: 3072, KVDim: 1024, Vocab: 151936, Type: layouttest.SmolLM2.Type}, 48 * machine.MiB},
	} {
		t.Run(name, func(t *testing.T) {
			r := requestFor(c.shape.Model(), 0)
			kv := 512 * r.KVTokenBytes
			least := leastOf(t, r)
			t.Logf("least %d MiB, of it kv %.1f MiB", least/machine.MiB, float64(kv)/float64(machine.MiB))
			if least-kv > c.least {
				t.Errorf("least is %d MiB and KV, want at most %d MiB and KV", (least-kv)/machine.MiB, c.least/machine.MiB)
			}
			r.Budget = least
			p, err := Make(r)
			if err != nil {
				t.Fatal(err)
			}
			if p.Chunk > 16 {
				t.Errorf("chunks of %d rows at the least budget", p.Chunk)
			}
			r.Budget = least - machine.MiB
			if _, err := Make(r); err == nil || !strings.Contains(err.Error(), "needs at least") {
				t.Errorf("1 MiB below the least: %v", err)
			}
		})
	}
}

func TestGrowth(t *testing.T) {
	for name, shape := range map[string]layouttest.Shape{
		"smollm2": layouttest.SmolLM2, "tinyllama": layouttest.TinyLlama, "llama-7b": layouttest.Llama7B,
	} {
		r := requestFor(shape.Model(), 0)
		least := leastOf(t, r)
		for _, add := range []int64{0, 8, 64, 256, 948, 2400, 8000, 16000} {
			r.Budget = least + add*machine.MiB
			p, err := Make(r)
			if err != nil {
				t.Fatal(err)
			}
			checkPlan(t, &r, p)
			pl := p.Placement
			t.Logf("%s +%d MiB: resident %v chunk %d slots %d × %d KiB readers %d held %d, pinned %d MiB (%d of memory) streamed %d MiB in %d units, policy %.3f",
				name, add, p.Resident, p.Chunk, pl.Slots, pl.SlotBytes>>10, pl.Readers, pl.Held(r.Model), p.PinnedBytes>>20, pl.PinnedMemory()>>20,
				p.StreamedBytes>>20, len(pl.Units), float64(p.RequiredBytes())/float64(max(p.ReadBytes, 1)))
		}
	}
}

// checkPlan checks what holds for every plan.
func checkPlan(t interface{ Errorf(string, ...any) }, r *Request, p *Plan) {
	var sum int64
	for _, n := range p.Pools {
		sum += n
	}
	if sum > r.Budget {
		t.Errorf("pools sum to %d, more than the budget %d: %v", sum, r.Budget, p.Pools)
	}
	if err := p.Placement.Check(r.Model); err != nil {
		t.Errorf("%v", err)
	}
	if n := layouttest.SweptBytes(r.Model); p.PinnedBytes+p.StreamedBytes != n {
		t.Errorf("%d bytes pinned and %d streamed of %d", p.PinnedBytes, p.StreamedBytes, n)
	}
	if p.Resident != (p.StreamedBytes == 0) {
		t.Errorf("resident %v, but %d bytes are streamed", p.Resident, p.StreamedBytes)
	}
	if held := p.Placement.Held(r.Model); !p.Resident && held > p.Placement.Slots/2 {
		t.Errorf("a sweep holds %d of %d slots: too few to read ahead", held, p.Placement.Slots)
	}
	if p.Pools[budget.Weights] < p.PinnedBytes+r.Model.VectorBytes() {
		t.Errorf("weights pool of %d for %d pinned bytes", p.Pools[budget.Weights], p.PinnedBytes)
	}
	if p.Chunk < 1 || p.Chunk < r.Sequences {
		t.Errorf("a chunk of %d rows for %d sequences", p.Chunk, r.Sequences)
	}
	for _, u := range p.Placement.Units {
		if u.Pinned && u.TileRows != 0 {
			t.Errorf("a pinned unit in tiles")
		}
	}
}

func drawRequest(t *rapid.T) Request {
	return Request{
		Model:   layouttest.Draw(t),
		Runtime: int64(rapid.IntRange(0, 1<<22).Draw(t, "runtime")), KVTokenBytes: int64(rapid.IntRange(0, 5000).Draw(t, "kv")),
		Context: rapid.IntRange(0, 600).Draw(t, "context"), Sequences: rapid.IntRange(0, 5).Draw(t, "sequences"),
		KVBlockTokens: rapid.SampledFrom([]int{0, 16, 32}).Draw(t, "block"), MaxChunk: rapid.IntRange(0, 600).Draw(t, "max chunk"),
		FixedScratch: int64(rapid.IntRange(0, 1<<20).Draw(t, "fixed")), Align: rapid.SampledFrom([]int{1, 512, 4096}).Draw(t, "align"),
	}
}

// Every budget from the least on works, and more memory never streams more.
func TestEveryBudgetWorks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		_, err := Make(r)
		var small *TooSmallError
		if !errors.As(err, &small) {
			t.Fatalf("a budget of 0 gives %v", err)
		}
		r.Budget = max(small.Least-machine.MiB, 0)
		if _, err := Make(r); !errors.As(err, &small) {
			t.Fatalf("1 MiB below the least: %v", err)
		}
		before := layouttest.SweptBytes(r.Model) + 1
		for range 6 {
			r.Budget = max(r.Budget, small.Least)
			p, err := Make(r)
			if err != nil {
				t.Fatal(err)
			}
			checkPlan(t, &r, p)
			// A ring that grows may take back a little of what was pinned.
			if p.StreamedBytes > before+p.Placement.StagingMemory() {
				t.Fatalf("%d bytes streamed at %d, %d with less", p.StreamedBytes, r.Budget, before)
			}
			before = p.StreamedBytes
			r.Budget += int64(rapid.IntRange(0, 3<<20).Draw(t, "more"))
		}
		r.Budget = small.Least + 2*layouttest.SweptBytes(r.Model) + 64*machine.MiB
		p, err := Make(r)
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, &r, p)
		if !p.Resident || !p.EmbeddingPinned {
			t.Fatalf("resident %v, embedding pinned %v with plenty of memory", p.Resident, p.EmbeddingPinned)
		}
	})
}

// What is pinned must be spread: at every place of the sweep the pinned part so far is near the
// average, so that neither drive nor cores wait for the other.
func TestPinnedIsSpread(t *testing.T) {
	m := layouttest.TinyLlama.Model()
	p, err := Make(requestFor(m, 1*machine.GiB))
	if err != nil {
		t.Fatal(err)
	}
	pinned := make([]int64, len(m.Matrices))
	for _, u := range p.Placement.Units {
		for _, part := range u.Parts {
			if u.Pinned {
				pinned[part.Matrix.ID] += part.Bytes()
			}
		}
	}
	share := float64(p.PinnedBytes) / float64(p.PinnedBytes+p.StreamedBytes)
	var passed, sum float64
	for _, x := range m.Sweep() {
		passed += float64(x.Bytes())
		sum += float64(pinned[x.ID])
		// Half a step of rounding, and what the last bytes of the budget were used for.
		if off, limit := sum-share*passed, 2*float64(p.Placement.SlotBytes); off > limit || off < -limit {
			t.Errorf("after %s the pinned part is off by %.0f bytes", x.Name, off)
		}
	}
	if unused := p.Budget - sumPools(p); unused > machine.MiB {
		t.Errorf("%d bytes of the budget are not used", unused)
	}
}

func sumPools(p *Plan) (n int64) {
	for _, x := range p.Pools {
		n += x
	}
	return n
}

// A matrix in memory is one tile, and a matrix partly in memory has one pinned run and one streamed.
func TestFewPieces(t *testing.T) {
	m := layouttest.TinyLlama.Model()
	p, err := Make(requestFor(m, 1*machine.GiB))
	if err != nil {
		t.Fatal(err)
	}
	pieces := make([]int, len(m.Matrices))
	for _, u := range p.Placement.Units {
		for _, part := range u.Parts {
			pieces[part.Matrix.ID]++
		}
	}
	for i, n := range pieces {
		if n > 2 {
			t.Errorf("%s lies in %d units", m.Matrices[i].Name, n)
		}
	}
}

func TestBadRequests(t *testing.T) {
	twice := layouttest.SmolLM2.Model()
	twice.Bundles = append(twice.Bundles, twice.Bundles[1])
	odd := layouttest.SmolLM2.Model()
	odd.Matrices[3].Rows = 0
	for name, r := range map[string]Request{
		"no model":        {},
		"alignment":       {Model: layouttest.SmolLM2.Model(), Align: 24},
		"negative":        {Model: layouttest.SmolLM2.Model(), Runtime: -1},
		"used twice":      {Model: twice, Budget: 1 << 40},
		"an empty matrix": {Model: odd, Budget: 1 << 40},
	} {
		var small *TooSmallError
		if _, err := Make(r); err == nil || errors.As(err, &small) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Small neighbours in the file are read together, although they are not neighbours in the sweep.
func TestNeighboursAreMerged(t *testing.T) {
	m := layouttest.SmolLM2.Model()
	r := requestFor(m, 0)
	r.Budget = leastOf(t, r) + 48*machine.MiB
	if err := r.normalize(); err != nil {
		t.Fatal(err)
	}
	s := newPlacer(&r)
	p := s.streamed(8<<20, 0)
	merged, parts := 0, 0
	for _, u := range p.Units {
		if len(u.Parts) > 1 {
			merged++
			parts += len(u.Parts)
		}
	}
	t.Logf("%d slots of %d KiB, %d held; %d units, %d of them merged from %d parts", p.Slots, p.SlotBytes>>10, p.Held(m), len(p.Units), merged, parts)
	if merged < m.Layers {
		t.Errorf("%d units are merged", merged)
	}
	if err := p.Check(m); err != nil {
		t.Error(err)
	}
}

// Files in any order give rings that cannot deadlock: Check proves it for each plan.
func TestMergedUnitsFitTheRing(t *testing.T) {
	merged := 0
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		if err := r.normalize(); err != nil {
			t.Fatal(err)
		}
		p := newPlacer(&r).streamed(int64(rapid.IntRange(0, 16<<20).Draw(t, "extra")), int64(rapid.IntRange(0, 2<<20).Draw(t, "pin")))
		if err := p.Check(r.Model); err != nil {
			t.Fatal(err)
		}
		if held := p.Held(r.Model); held > max(p.Slots/2, 1) {
			t.Fatalf("%d of %d slots held", held, p.Slots)
		}
		for _, u := range p.Units {
			if len(u.Parts) > 1 && !u.Pinned {
				merged++
			}
		}
	})
	if merged == 0 {
		t.Error("nothing was merged in any plan")
	}
	t.Logf("%d merged units", merged)
}

// TestExchanged has matrices of which a few rows are as costly to read as many: the ring has longer slots
// then, and readers have their scratch.
func TestExchanged(t *testing.T) {
	slots := map[bool]int64{}
	for _, exchanged := range []bool{false, true} {
		m := layouttest.TinyLlama.Model()
		m.ReadScratch, m.Exchanged = 100<<10, exchanged
		r := Request{Model: m, Context: 256, KVTokenBytes: 1 << 10, Budget: 200 * machine.MiB}
		p, err := Make(r)
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for _, n := range p.Pools {
			sum += n
		}
		place := p.Placement
		if sum > r.Budget || place.ScratchBytes() < m.ReadScratch+min(place.SlotBytes, 1<<20) {
			t.Errorf("%d bytes planned, scratch of %d for slots of %d", sum, place.ScratchBytes(), place.SlotBytes)
		}
		slots[exchanged] = place.SlotBytes
	}
	if slots[true] < 2*slots[false] {
		t.Errorf("slots of %d bytes, others have %d", slots[true], slots[false])
	}
}
