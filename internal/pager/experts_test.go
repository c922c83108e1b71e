package pager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
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
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
	"pgregory.net/rapid"
)

// drawExperts makes a model with experts and a request whose budget lies between the least and everything.
func drawExperts(t *rapid.T) (*layout.Model, plan.Request) {
	m := layouttest.Draw(t)
	layouttest.DrawExperts(t, m)
	r := plan.Request{Model: m, Align: rapid.SampledFrom([]int{1, 512, 4096}).Draw(t, "align"), Context: 8, MaxChunk: 8}
	_, err := plan.Make(r)
	var small *plan.TooSmallError
	if !errors.As(err, &small) {
		t.Fatal(err)
	}
	all := layouttest.SweptBytes(m) + m.ExpertBytes()
	r.Budget = small.Least + int64(rapid.Float64Range(0, 1.5).Draw(t, "share")*float64(all))
	return m, r
}

// visit is some experts of a layer, each once.
func visit(rng *rand.Rand, l *layout.ExpertLayer) policy.Visit {
	v := policy.Visit{Decode: 1}
	for _, e := range rng.Perm(l.Count())[:1+rng.IntN(l.Count())] {
		v.Demands = append(v.Demands, policy.Demand{Expert: int32(e), Decode: 1})
	}
	return v
}

// visited is what a sweep's visits gave: experts that came, and errors of single ones.
type visited struct {
	seen   int
	failed []error
}

// visitAll asks for experts of every layer in one sweep, and compares every byte of them. It leaves the last visit
// after so many experts if stop is ≥ 0.
func (b *bench) visitAll(t failer, rng *rand.Rand, stop int) (out visited, err error) {
	s, err := b.pager.Begin(context.Background())
	if err != nil {
		return out, err
	}
	defer s.End()
	for i := range b.model.Experts {
		v := visit(rng, &b.model.Experts[i])
		b.predict(s, rng, i, v)
		if err := s.Ask(i, v); err != nil {
			return out, err
		}
		if stop == 0 && i == len(b.model.Experts)-1 {
			return out, nil // asked for, and never come for
		}
		got := map[int]bool{}
		most := 1 + rng.IntN(3)
		for some, err := range s.Experts(most) {
			if err != nil {
				return out, err
			}
			if len(some) > most {
				t.Fatalf("%d experts at once, not %d", len(some), most)
			}
			for _, e := range some {
				if e.Err != nil {
					out.failed = append(out.failed, e.Err)
				} else if err := b.expert(t, e, i, int(v.Demands[e.Demand].Expert)); err != nil {
					return out, err
				} else {
					out.seen++
				}
				if got[e.Demand] {
					t.Fatalf("layer %d: demand %d came twice", i, e.Demand)
				}
				got[e.Demand] = true
			}
			if i == len(b.model.Experts)-1 && stop >= 0 && len(got) >= stop {
				break
			}
		}
		if len(got) != len(v.Demands) && (stop < 0 || i < len(b.model.Experts)-1) {
			t.Fatalf("layer %d: %d demands came of %d", i, len(got), len(v.Demands))
		}
	}
	return out, nil
}

// predict says what a layer will need, rightly or not, in a layer before it or right before it asks, or says nothing.
func (b *bench) predict(s *pager.Sweep, rng *rand.Rand, layer int, v policy.Visit) {
	var guessed []int32
	for _, d := range v.Demands {
		if rng.IntN(2) == 0 {
			guessed = append(guessed, d.Expert)
		}
	}
	for rng.IntN(3) > 0 {
		guessed = append(guessed, int32(rng.IntN(b.model.Experts[layer].Count())))
	}
	switch rng.IntN(3) {
	case 0:
		s.Predict(layer, guessed)
	case 1:
		s.Predict(rng.IntN(len(b.model.Experts)), guessed)
	}
	if rng.IntN(2) == 0 {
		time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond) // so that some are read
	}
}

// expert compares the bytes of one.
func (b *bench) expert(t failer, e pager.Expert, layer, id int) error {
	for k := range b.model.Experts[layer].Stacks {
		st := &b.model.Experts[layer].Stacks[k]
		row := 0
		for tile, err := range e.Tiles(k) {
			if err != nil {
				return err
			}
			from := st.At[id].Offset + int64(row)*st.RowBytes()
			want := b.data[st.At[id].File][from : from+int64(tile.Rows)*st.RowBytes()]
			if tile.Row0 != row || !bytes.Equal(tile.Bytes(), want) {
				t.Fatalf("expert %d of layer %d, stack %d: tile of %d rows at %d, want row %d next; or other bytes", id, layer, k, tile.Rows, tile.Row0, row)
			}
			row += tile.Rows
		}
		if row != st.Rows {
			t.Fatalf("expert %d of layer %d, stack %d: %d rows of %d", id, layer, k, row, st.Rows)
		}
	}
	return nil
}

func TestEveryByteOfExperts(t *testing.T) {
	var slots, rings int
	for range 10 { // a short run draws few: until both have been seen often enough
		if min(slots, rings) < 5 {
			everyByteOfExperts(t, &slots, &rings)
		}
	}
	if min(slots, rings) < 5 {
		t.Errorf("%d runs had slots, %d a ring", slots, rings)
	}
}

func everyByteOfExperts(t *testing.T, slots, rings *int) {
	rapid.Check(t, func(t *rapid.T) {
		m, request := drawExperts(t)
		seed := rapid.Uint64().Draw(t, "delays")
		var reads atomic.Uint64
		delay := vfs.Fault(nil, vfs.Plan{Delay: func(read int64) time.Duration {
			return time.Duration(rand.New(rand.NewPCG(seed, reads.Add(1))).IntN(200)) * time.Microsecond
		}})
		b := open(t, m, request, delay.Wrap)
		defer b.close(t)
		if b.plan.Experts.Slots > 0 {
			*slots++
		} else {
			*rings++
		}
		rng := rand.New(rand.NewPCG(seed, 9))
		for range rapid.IntRange(1, 5).Draw(t, "sweeps") {
			stop := -1
			if rapid.IntRange(0, 3).Draw(t, "leave") == 0 {
				stop = rapid.IntRange(0, 3).Draw(t, "after")
			}
			if out, err := b.visitAll(t, rng, stop); err != nil || len(out.failed) > 0 {
				t.Fatal(err, out.failed)
			}
		}
	})
}

// A read that fails twice is the error of one expert, or where experts have no slots, of the sweep; one that fails
// once is not noticed. Afterwards all is well.
func TestFaultsOfExperts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, request := drawExperts(t)
		var failing atomic.Int64 // reads still to fail
		b := open(t, m, request, func(f vfs.File) vfs.File {
			return faulty{f, func() bool { return failing.Add(-1) >= 0 }}
		})
		defer b.close(t)
		rng := rand.New(rand.NewPCG(1, 9))
		if err := b.sweep(t, -1); err != nil {
			t.Fatal(err)
		}
		failing.Store(1)
		if out, err := b.visitAll(t, rng, -1); err != nil || len(out.failed) > 0 {
			t.Fatalf("after one failure: %v, %v", err, out.failed)
		}
		failing.Store(1 << 40)
		out, err := b.visitAll(t, rng, -1)
		for _, err := range append(out.failed, err) {
			if err != nil && (!errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "file") || !strings.Contains(err.Error(), "offset")) {
				t.Fatalf("an error that does not say what happened where: %v", err)
			}
		}
		failing.Store(0)
		for range 3 {
			if out, err := b.visitAll(t, rng, -1); err != nil || len(out.failed) > 0 {
				t.Fatalf("after the fault: %v, %v", err, out.failed)
			}
		}
	})
}

// With slots for all, every expert is read once.
func TestExpertsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, request := drawExperts(t)
		request.Budget += layouttest.SweptBytes(m) + 2*m.ExpertBytes() + 64<<20
		b := open(t, m, request, nil)
		defer b.close(t)
		if !b.plan.Experts.Resident() || !b.plan.Resident {
			t.Fatalf("not all experts have slots: %+v", b.plan.Experts)
		}
		rng := rand.New(rand.NewPCG(1, 9))
		for range 4 {
			if _, err := b.visitAll(t, rng, -1); err != nil {
				t.Fatal(err)
			}
		}
		s, total := b.pager.Stats(), int64(0)
		for i := range m.Experts {
			total += int64(m.Experts[i].Count())
		}
		if read := s.Experts - s.ExpertHits; read > total {
			t.Fatalf("%d experts were read, there are %d", read, total)
		}
	})
}

// Bytes that are not planned for are refused.
func TestExpertsNeedRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, request := drawExperts(t)
		request.Model = m
		p, err := plan.Make(request)
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for _, n := range p.Pools {
			sum += n
		}
		if sum > request.Budget {
			t.Fatalf("%d bytes are planned under a budget of %d", sum, request.Budget)
		}
		var room *budget.NoRoomError
		_, err = pager.Open(context.Background(), pager.Config{Model: m, Placement: p.Placement, Ledger: budget.New(p.Pools[budget.Weights] - 1),
			Files: filesOf(m)})
		if !errors.As(err, &room) {
			t.Fatalf("a ledger of a byte less: %v", err)
		}
	})
}

func filesOf(m *layout.Model) []vfs.File {
	var files []vfs.File
	for _, d := range contents(m, 1) {
		files = append(files, vfs.Bytes("file", d))
	}
	return files
}

// addExperts gives every layer experts of two matrices, behind everything else.
func addExperts(m *layout.Model, count, used int) {
	end := layouttest.FileBytes(m)[0]
	for i := range m.Layers {
		l := layout.ExpertLayer{Layer: i, Used: used}
		for k := range 2 {
			st := layout.Stack{Name: fmt.Sprintf("blk.%d.%d.experts", i, k), Type: quant.F32, Rows: 64, Cols: 256, At: make([]layout.Place, count)}
			for e := range count {
				st.At[e].Offset = end
				end += st.Bytes()
			}
			l.Stacks = append(l.Stacks, st)
		}
		m.Experts = append(m.Experts, l)
	}
}

// Guesses that are right are used and read once; where all are wrong, guessing stops: for the next layer and for the one after it each by
// itself.
func TestGuesses(t *testing.T) {
	m := layouttest.Shape{Layers: 4, Hidden: 256, FFN: 256, KVDim: 128, Vocab: 256}.Model()
	addExperts(m, 16, 2)
	request := plan.Request{Model: m, Align: 512, Budget: 4<<20 + layouttest.SweptBytes(m) + m.ExpertBytes()/3}
	for _, ahead := range []int{1, 2} {
		for _, right := range []bool{true, false} {
			b := open(t, m, request, nil)
			if n := b.plan.Experts.Slots; n < 16 || b.plan.Experts.Resident() {
				t.Fatalf("%d slots", n)
			}
			if err := b.sweep(t, -1); err != nil {
				t.Fatal(err)
			}
			for i := 0; b.pager.Predicts(ahead) && b.pager.Stats().Guesses < 150 && i < 2000; i++ {
				b.guess(t, i, ahead, right)
			}
			s := b.pager.Stats()
			if s.Guesses < 64 || right != (s.GuessesUsed == s.Guesses) || right != (s.GuessesOff == 0) || right != b.pager.Predicts(ahead) ||
				!b.pager.Predicts(pager.GuessLayers+1-ahead) {
				t.Errorf("%d ahead, guesses right: %v; %+v", ahead, right, s)
			}
			b.close(t)
		}
	}
}

// guess is a sweep whose layers use two experts each. So many layers ahead it predicts one of them, or another one.
func (b *bench) guess(t failer, i, ahead int, right bool) {
	s, err := b.pager.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.End()
	of := func(l int) int32 { return int32((i*7 + l) % 15) }
	for l := range b.model.Experts {
		v := policy.Visit{Decode: 1, Demands: []policy.Demand{{Expert: of(l), Decode: 1}, {Expert: of(l) + 1, Decode: 1}}}
		if err := s.Ask(l, v); err != nil {
			t.Fatal(err)
		}
		for some, err := range s.Experts(2) {
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range some {
				if err := b.expert(t, x, l, int(v.Demands[x.Demand].Expert)); err != nil {
					t.Fatal(err)
				}
			}
		}
		g := of(l + ahead)
		if !right {
			g = (g + 8) % 16
		}
		before := b.pager.Stats()
		s.Predict(l+ahead, []int32{g})
		for try := 0; try < 10 && b.pager.Stats().Guessed == before.Guessed; try++ {
			time.Sleep(20 * time.Microsecond)
		}
	}
}
