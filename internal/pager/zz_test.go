package pager_test

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout/layouttest"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/vfs"
)

func TestZZ(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		t.Skip()
	}
	shape := layouttest.TinyLlama
	shape.Layers = 18
	m := shape.Model()
	f, err := vfs.OS().Open("/tmp/pager/big")
	if err != nil {
		t.Fatal(err)
	}
	l := budget.New(2 << 30)
	big, _ := mem.New(l, budget.Staging, 64<<20, "x")
	raw := func(s int64, d int) float64 {
		var next, tot atomic.Int64
		var wg sync.WaitGroup
		st := time.Now()
		for w := range d {
			wg.Go(func() {
				b := big.Bytes()[int64(w)*s:][:s]
				for time.Since(st) < 700*time.Millisecond {
					o := next.Add(s) - s
					n, _ := f.ReadAt(b, o%(2<<30-s)&^4095)
					tot.Add(int64(n))
				}
			})
		}
		wg.Wait()
		return float64(tot.Load()) / time.Since(st).Seconds() / 1e9
	}
	for _, limit := range []int64{48 << 20, 128 << 20, 512 << 20} {
		p, err := plan.Make(plan.Request{Model: m, Budget: limit, Align: f.Align(), Context: 64})
		if err != nil {
			t.Fatal(err)
		}
		pl := p.Placement
		for range 3 {
			pg, err := pager.Open(context.Background(), pager.Config{Model: m, Placement: pl, Files: []vfs.File{f}, Ledger: l})
			if err != nil {
				t.Fatal(err)
			}
			one := func() {
				s, _ := pg.Begin(context.Background())
				for _, x := range m.Sweep() {
					for _, err := range s.Tiles(x) {
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				s.End()
			}
			one()
			before := pg.Stats()
			st := time.Now()
			for time.Since(st) < 700*time.Millisecond {
				one()
			}
			d := pg.Stats().Sub(before)
			el := time.Since(st)
			pg.Close()
			t.Logf("%d MiB: pager %.2f GB/s (wait %.2f busy %.2f, %d KiB a request); raw %d x %d KiB: %.2f; 4096 x 16: %.2f", limit>>20, float64(d.Read)/el.Seconds()/1e9,
				d.Wait.Seconds()/el.Seconds(), d.Busy.Seconds()/el.Seconds(), d.Read/d.Requests>>10, pl.Readers, pl.SlotBytes>>10, raw(pl.SlotBytes&^4095, pl.Readers), raw(4<<20, 16))
		}
	}
}
