package pager_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/layout/layouttest"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/vfs"
)

// BenchmarkDrive compares sweeps without compute over a file on disk with the drive's own speed,
// measured before and after. The metric drive-fraction is near 1 if the pager wastes nothing.
func BenchmarkDrive(b *testing.B) {
	shape := layouttest.TinyLlama
	shape.Layers = 11
	m := shape.Model()
	path := filepath.Join(b.TempDir(), "model")
	writeRandom(b, path, layouttest.FileBytes(m)[0])
	f, err := vfs.OS().Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		name  string
		limit int64
	}{{"48MiB", 48 << 20}, {"128MiB", 128 << 20}, {"512MiB", 512 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			p, err := plan.Make(plan.Request{Model: m, Budget: c.limit, Align: f.Align(), Context: 64})
			if err != nil {
				b.Fatal(err)
			}
			l := budget.New(c.limit)
			pg, err := pager.Open(context.Background(), pager.Config{Model: m, Placement: p.Placement, Files: []vfs.File{f}, Ledger: l})
			if err != nil {
				b.Fatal(err)
			}
			order := m.Sweep()
			sweepOnce(b, pg, order) // loads what is pinned
			before := pg.Stats()
			start := time.Now()
			for b.Loop() {
				sweepOnce(b, pg, order)
			}
			speed := float64(pg.Stats().Sub(before).Read) / time.Since(start).Seconds()
			if err := pg.Close(); err != nil {
				b.Fatal(err)
			}
			best := driveSpeed(b, f)
			b.ReportMetric(speed/1e9, "GB/s")
			b.ReportMetric(best/1e9, "drive-GB/s")
			b.ReportMetric(speed/best, "drive-fraction")
		})
	}
}

func driveSpeed(b *testing.B, f vfs.File) float64 {
	b.Helper()
	buf, err := mem.New(budget.New(16<<20), budget.Staging, 12<<20, "measurement")
	if err != nil {
		b.Fatal(err)
	}
	defer buf.Free()
	profile, err := vfs.MeasureDrive(f, buf.Bytes(), 3*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	return profile.Best.BytesPerSecond
}

// BenchmarkTile is the cost of a sweep's bookkeeping: everything is in memory.
func BenchmarkTile(b *testing.B) {
	m := layouttest.Shape{Layers: 30, Hidden: 256, FFN: 256, KVDim: 128, Vocab: 256}.Model()
	data := contents(m, 1)
	p, err := plan.Make(plan.Request{Model: m, Budget: 256 << 20, Align: 1})
	if err != nil {
		b.Fatal(err)
	}
	pg, err := pager.Open(context.Background(), pager.Config{Model: m, Placement: p.Placement,
		Files: []vfs.File{vfs.Bytes("f", data[0])}, Ledger: budget.New(256 << 20)})
	if err != nil {
		b.Fatal(err)
	}
	defer pg.Close()
	order := m.Sweep()
	sweepOnce(b, pg, order)
	b.ReportAllocs()
	for b.Loop() {
		sweepOnce(b, pg, order)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(order)), "ns/matrix")
}

func writeRandom(b *testing.B, path string, n int64) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 8<<20)
	rand.NewChaCha8([32]byte{}).Read(buf)
	for done := int64(0); done < n; done += int64(len(buf)) {
		buf[0]++
		if _, err := f.Write(buf[:min(int64(len(buf)), n-done)]); err != nil {
			b.Fatal(err)
		}
	}
	if err := vfs.DropCache(path); err != nil {
		b.Log(err)
	}
}

func sweepOnce(b *testing.B, pg *pager.Pager, order []*layout.Matrix) {
	s, err := pg.Begin(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer s.End()
	for _, m := range order {
		for _, err := range s.Tiles(m) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
