package pager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/layout/layouttest"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// contents are files of random bytes for a model, as long as it needs.
func contents(m *layout.Model, seed uint64) [][]byte {
	rng := rand.NewChaCha8([32]byte{byte(seed)})
	var files [][]byte
	for _, n := range layouttest.FileBytes(m) {
		b := make([]byte, n)
		rng.Read(b)
		files = append(files, b)
	}
	return files
}

// aligned insists on what a direct file needs.
type aligned struct {
	vfs.File
	align int
}

func (f aligned) Align() int { return f.align }

func (f aligned) ReadAt(p []byte, off int64) (int, error) {
	if off%int64(f.align) != 0 || len(p)%f.align != 0 || !mem.IsAligned(p, f.align) {
		return 0, fmt.Errorf("read of %d bytes at %d into %p is not aligned to %d", len(p), off, p, f.align)
	}
	return f.File.ReadAt(p, off)
}

// faulty fails reads while fail says so.
type faulty struct {
	vfs.File
	fail func() bool
}

func (f faulty) ReadAt(p []byte, off int64) (int, error) {
	if f.fail() {
		return 0, syscall.EIO
	}
	return f.File.ReadAt(p, off)
}

// bench is a pager over files in memory.
type bench struct {
	model  *layout.Model
	data   [][]byte
	plan   *plan.Plan
	ledger *budget.Ledger
	pager  *pager.Pager
	spent  budget.Usage // before the pager
}

type failer interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

func open(t failer, m *layout.Model, request plan.Request, wrap func(vfs.File) vfs.File) *bench {
	b := &bench{model: m, data: contents(m, 1)}
	request.Model = m
	p, err := plan.Make(request)
	if err != nil {
		t.Fatal(err)
	}
	var files []vfs.File
	for i, d := range b.data {
		f := vfs.File(aligned{vfs.Bytes(fmt.Sprintf("file%d", i), d), max(request.Align, 1)})
		if wrap != nil {
			f = wrap(f)
		}
		files = append(files, f)
	}
	b.plan, b.ledger = p, budget.New(request.Budget)
	b.spent = b.ledger.Snapshot()
	b.pager, err = pager.Open(context.Background(), pager.Config{Model: m, Placement: p.Placement, Files: files, Ledger: b.ledger})
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range []budget.Pool{budget.Weights, budget.Staging} {
		if got, want := b.ledger.Snapshot().Pools[pool].Used, p.Pools[pool]; got != want {
			t.Fatalf("%v: %d bytes leased, %d planned", pool, got, want)
		}
	}
	return b
}

// close checks that the ledger ends where it began.
func (b *bench) close(t failer) {
	if err := b.pager.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if u := b.ledger.Snapshot(); u.Used != b.spent.Used {
		t.Fatalf("the ledger ends at %d bytes, it began at %d", u.Used, b.spent.Used)
	}
}

// sweep runs one sweep and compares every byte. It stops before matrix number stop, if that is ≥ 0.
func (b *bench) sweep(t failer, stop int, skip ...layout.Kind) error {
	s, err := b.pager.Begin(context.Background(), skip...)
	if err != nil {
		return err
	}
	defer s.End()
	skipped := map[layout.Kind]bool{layout.Embedding: true}
	for _, k := range skip {
		skipped[k] = true
	}
	n := 0
	for _, bundle := range b.model.Bundles {
		if skipped[bundle.Kind] {
			continue
		}
		for _, m := range bundle.Matrices {
			if n == stop {
				return nil
			}
			if err := b.matrix(t, s, m); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

func (b *bench) matrix(t failer, s *pager.Sweep, m *layout.Matrix) error {
	row := 0
	for tile, err := range s.Tiles(m) {
		if err != nil {
			return err
		}
		from := m.Offset + int64(row)*m.RowBytes()
		if tile.Row0 != row || !bytes.Equal(tile.Bytes(), b.data[m.File][from:from+int64(tile.Rows)*m.RowBytes()]) {
			t.Fatalf("%s: tile of %d rows at %d, want row %d next; or other bytes", m.Name, tile.Rows, tile.Row0, row)
		}
		row += tile.Rows
	}
	if row != m.Rows {
		t.Fatalf("%s: %d rows of %d", m.Name, row, m.Rows)
	}
	return nil
}

// draw makes a request whose budget lies between the least and everything.
func draw(t *rapid.T, m *layout.Model) plan.Request {
	r := plan.Request{Model: m, Align: rapid.SampledFrom([]int{1, 512, 4096}).Draw(t, "align"), Context: 8, MaxChunk: 8}
	_, err := plan.Make(r)
	var small *plan.TooSmallError
	if !errors.As(err, &small) {
		t.Fatal(err)
	}
	r.Budget = small.Least + int64(rapid.Float64Range(0, 1.5).Draw(t, "share")*float64(layouttest.SweptBytes(m)))
	return r
}

// readPerSweep is exactly what a sweep reads: as planned, but no further than the files go.
func (b *bench) readPerSweep() int64 {
	total, _ := b.sweepBytes()
	return total
}

// sweepBytes are the bytes that a sweep reads, and those that its requests ask for beyond the ends of files.
func (b *bench) sweepBytes() (total, beyond int64) {
	pl := b.plan.Placement
	for i := range pl.Units {
		u := &pl.Units[i]
		if u.Pinned {
			continue
		}
		for t := range u.Tiles() {
			start, end := pl.Enclosing(u.Tile(t))
			size := int64(len(b.data[u.File]))
			total += min(end, size) - start
			beyond += max(end-size, 0)
		}
	}
	return total, beyond
}

func TestEveryByteOfEverySweep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := layouttest.Draw(t)
		seed := rapid.Uint64().Draw(t, "delays")
		var reads atomic.Uint64
		delay := vfs.Fault(nil, vfs.Plan{Delay: func(read int64) time.Duration {
			return time.Duration(rand.New(rand.NewPCG(seed, reads.Add(1))).IntN(200)) * time.Microsecond
		}})
		wrap := delay.Wrap
		if rapid.Bool().Draw(t, "no delays") {
			wrap = nil
		}
		b := open(t, m, draw(t, m), wrap)
		defer b.close(t)
		sweeps := rapid.IntRange(1, 4).Draw(t, "sweeps")
		for range sweeps {
			var skip []layout.Kind
			stop := -1
			switch rapid.IntRange(0, 5).Draw(t, "how") {
			case 0:
				stop = rapid.IntRange(0, len(m.Sweep())).Draw(t, "stop")
			case 1:
				skip = append(skip, layout.Head)
			case 2:
				skip = append(skip, layout.Attention)
			}
			if err := b.sweep(t, stop, skip...); err != nil {
				t.Fatal(err)
			}
			b.lookUp(t, rapid.SliceOfN(rapid.IntRange(0, m.Matrices[0].Rows-1), 0, 20).Draw(t, "rows"))
		}
		b.checkVectors(t)
	})
}

// lookUp compares rows of the embedding.
func (b *bench) lookUp(t failer, rows []int) {
	m := b.model.Matrices[0]
	var ids []int32
	for _, r := range rows {
		ids = append(ids, int32(r))
	}
	seen := make([]int, len(ids))
	err := b.pager.Rows(context.Background(), m, ids, func(i int, raw []byte) error {
		seen[i]++
		if from := m.Offset + int64(ids[i])*m.RowBytes(); !bytes.Equal(raw, b.data[m.File][from:from+m.RowBytes()]) {
			return fmt.Errorf("row %d has other bytes", ids[i])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range seen {
		if n != 1 {
			t.Fatalf("row %d was visited %d times", i, n)
		}
	}
}

func (b *bench) checkVectors(t failer) {
	for _, v := range b.model.Vectors {
		raw := b.data[v.File][v.Offset : v.Offset+int64(4*v.Len)]
		if got := mem.FromFloat32s(b.pager.Vector(v)); !bytes.Equal(got, raw) {
			t.Fatalf("vector %s has other values", v.Name)
		}
	}
}

// In the steady state a sweep reads exactly the streamed part.
func TestBytesAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := layouttest.Draw(t)
		b := open(t, m, draw(t, m), nil)
		defer b.close(t)
		if err := b.sweep(t, -1); err != nil {
			t.Fatal(err)
		}
		b.settle(t)
		before := b.pager.Stats()
		const sweeps = 3
		for range sweeps {
			if err := b.sweep(t, -1); err != nil {
				t.Fatal(err)
			}
		}
		b.settle(t)
		got := b.pager.Stats().Sub(before)
		if want := sweeps * b.readPerSweep(); got.Read != want || got.Streamed() != want {
			t.Fatalf("%d bytes read, %d of them streamed, want %d", got.Read, got.Streamed(), want)
		}
		if got.Passed != sweeps*layouttest.SweptBytes(m) || got.Hit != sweeps*b.plan.PinnedBytes || got.Sweeps != sweeps {
			t.Fatalf("%+v, want %d bytes passed and %d hit", got, sweeps*layouttest.SweptBytes(m), sweeps*b.plan.PinnedBytes)
		}
		if read, beyond := b.sweepBytes(); b.plan.ReadBytes != read+beyond {
			t.Fatalf("planned are %d bytes, read are %d, and %d asked for beyond the ends of files", b.plan.ReadBytes, read, beyond)
		}
	})
}

// settle waits until the readers have filled the ring for the next sweep.
func (b *bench) settle(t failer) {
	if err := b.pager.Preload(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	for last := int64(-1); ; {
		time.Sleep(3 * time.Millisecond)
		n, busy := b.pager.Progress()
		if !busy && n == last {
			return
		}
		last = n
	}
}

func streaming(t *testing.T, wrap func(vfs.File) vfs.File) *bench {
	m := layouttest.Shape{Layers: 6, Hidden: 256, FFN: 768, KVDim: 128, Vocab: 2000, Tied: false}.Model()
	b := open(t, m, plan.Request{Budget: 6 << 20, Align: 512, Context: 8, MaxChunk: 8}, wrap)
	if b.plan.Resident || b.plan.PinnedBytes == 0 {
		t.Fatalf("the test wants a part pinned and a part streamed: %+v", b.plan)
	}
	return b
}

// The order of the sweep is checked, not waited for.
func TestWrongOrder(t *testing.T) {
	b := streaming(t, nil)
	defer b.close(t)
	order := b.model.Sweep()
	s, err := b.pager.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.pager.Begin(context.Background()); err == nil {
		t.Error("two sweeps at once")
	}
	if err := b.pager.Close(); err == nil {
		t.Error("closed during a sweep")
	}
	if err := b.matrix(t, s, order[0]); err != nil {
		t.Fatal(err)
	}
	if err := b.matrix(t, s, order[2]); err == nil || !strings.Contains(err.Error(), order[1].Name+" is next") {
		t.Errorf("out of order: %v", err)
	}
	s.End()
	s.End()
	if err := b.matrix(t, s, order[1]); err == nil {
		t.Error("an ended sweep goes on")
	}
	if s, err = b.pager.Begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range s.Tiles(order[0]) {
		break
	}
	if err := b.matrix(t, s, order[1]); err == nil || !strings.Contains(err.Error(), "left early") {
		t.Errorf("after a loop that was left: %v", err)
	}
	s.End()
	if err := b.sweep(t, -1); err != nil {
		t.Error(err)
	}
}

// Neither tiles nor look-ups leave garbage.
func TestNoGarbage(t *testing.T) {
	b := streaming(t, nil)
	defer b.close(t)
	order := b.model.Sweep()
	embed := b.model.Bundles[0].Matrices[0]
	rows := []int32{7, 1, 7, 900}
	visit := func(int, []byte) error { return nil }
	run := func() {
		s, err := b.pager.Begin(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range order {
			for _, err := range s.Tiles(m) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		s.End()
		if err := b.pager.Rows(context.Background(), embed, rows, visit); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(50, run); n > 4 {
		t.Errorf("%.1f allocations for a sweep of %d matrices and a look-up", n, len(order))
	}
}

// Look-ups and sweeps do not disturb each other.
func TestRowsDuringSweeps(t *testing.T) {
	b := streaming(t, vfs.Fault(nil, vfs.Plan{Delay: func(read int64) time.Duration {
		return time.Duration(read%7) * 30 * time.Microsecond
	}}).Wrap)
	defer b.close(t)
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 20 {
				rows := make([]int, rng.IntN(30))
				for i := range rows {
					rows[i] = rng.IntN(2000)
				}
				b.lookUp(panics{}, rows)
			}
		})
	}
	for range 10 {
		if err := b.sweep(t, -1); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

// panics fails from any goroutine.
type panics struct{}

func (panics) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (panics) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Preload tells how far it is, and ends when everything pinned is there.
func TestPreload(t *testing.T) {
	var failing atomic.Bool
	b := streaming(t, func(f vfs.File) vfs.File { return faulty{f, failing.Load} })
	defer b.close(t)
	var done, total int64
	if err := b.pager.Preload(context.Background(), func(d, n int64) { done, total = d, n }); err != nil {
		t.Fatal(err)
	}
	if done != total || done < b.plan.PinnedBytes {
		t.Errorf("%d of %d bytes loaded, planned are %d", done, total, b.plan.PinnedBytes)
	}
	before := b.pager.Stats()
	failing.Store(true) // what is pinned is not read again
	if err := b.sweep(t, 0); err != nil {
		t.Error(err)
	}
	if got := b.pager.Stats().Sub(before); got.Loaded != 0 {
		t.Errorf("%d bytes loaded after the preload", got.Loaded)
	}
}
