package pager_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout/layouttest"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/vfs"
	"pgregory.net/rapid"
)

// A read that fails twice ends the sweep with an error that says where; the next sweep works.
func TestFaultsEndOneSweep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := layouttest.Draw(t)
		var failing atomic.Bool
		var reads atomic.Int64
		wrap := func(f vfs.File) vfs.File {
			return faulty{f, func() bool { return failing.Load() && reads.Add(1) > 2 }}
		}
		b := open(t, m, draw(t, m), wrap)
		defer b.close(t)
		if rapid.Bool().Draw(t, "load first") {
			if err := b.sweep(t, -1); err != nil {
				t.Fatal(err)
			}
		}
		failing.Store(true)
		for range 2 {
			err := b.sweep(t, -1)
			if err == nil {
				continue // all bytes were there before
			}
			if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "file") || !strings.Contains(err.Error(), "offset") {
				t.Fatalf("an error that does not say what happened where: %v", err)
			}
		}
		failing.Store(false)
		for range 2 {
			if err := b.sweep(t, -1); err != nil {
				t.Fatalf("after the fault: %v", err)
			}
		}
	})
}

// One failure alone is not noticed: there is a second try.
func TestSecondTry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := layouttest.Draw(t)
		fault := vfs.Fault(nil, vfs.Plan{FailRead: int64(rapid.IntRange(1, 40).Draw(t, "fail"))})
		b := open(t, m, draw(t, m), fault.Wrap)
		defer b.close(t)
		for range 3 {
			if err := b.sweep(t, -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// cut is a file that has become shorter since it was opened.
type cut struct {
	vfs.File
	end *atomic.Int64
}

func (f cut) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if end := f.end.Load(); end > 0 && off+int64(n) > end {
		return int(max(0, end-off)), io.EOF
	}
	return n, err
}

func TestTruncatedFile(t *testing.T) {
	var end atomic.Int64
	b := streaming(t, func(f vfs.File) vfs.File { return cut{f, &end} })
	defer b.close(t)
	end.Store(6 << 20)
	var err error
	for range 2 { // the readers may have passed the end before it was there
		err = errors.Join(err, b.sweep(t, -1))
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "blk.") || !strings.Contains(err.Error(), "file ends at") {
		t.Errorf("a truncated file gives %v", err)
	}
	end.Store(0)
	if err := b.sweep(t, -1); err != nil {
		t.Error(err)
	}
}

func TestShortFileIsRefused(t *testing.T) {
	m := layouttest.Shape{Layers: 1, Hidden: 256, FFN: 256, KVDim: 128, Vocab: 100}.Model()
	p, err := plan.Make(plan.Request{Model: m, Budget: 64 << 20, Align: 512})
	if err != nil {
		t.Fatal(err)
	}
	l := budget.New(64 << 20)
	_, err = pager.Open(context.Background(), pager.Config{Model: m, Placement: p.Placement, Ledger: l,
		Files: []vfs.File{vfs.Bytes("short.gguf", make([]byte, 5000))}})
	if err == nil || !strings.Contains(err.Error(), "short.gguf is truncated") {
		t.Errorf("%v", err)
	}
	if l.Snapshot().Used != 0 {
		t.Errorf("the ledger holds %d bytes", l.Snapshot().Used)
	}
}

func TestNoRoomLeavesNothing(t *testing.T) {
	m := layouttest.Shape{Layers: 1, Hidden: 256, FFN: 256, KVDim: 128, Vocab: 100}.Model()
	p, err := plan.Make(plan.Request{Model: m, Budget: 64 << 20, Align: 512})
	if err != nil {
		t.Fatal(err)
	}
	l := budget.New(1000)
	_, err = pager.Open(context.Background(), pager.Config{Model: m, Placement: p.Placement, Ledger: l,
		Files: []vfs.File{vfs.Bytes("f", make([]byte, 2<<20))}})
	var no *budget.NoRoomError
	if !errors.As(err, &no) || l.Snapshot().Used != 0 {
		t.Errorf("%v, %d bytes used", err, l.Snapshot().Used)
	}
}

// Waiting for a tile ends with the context.
func TestCancel(t *testing.T) {
	block := make(chan struct{})
	var on atomic.Bool
	b := streaming(t, func(f vfs.File) vfs.File {
		return faulty{f, func() bool {
			if on.Load() {
				<-block
			}
			return false
		}}
	})
	on.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := b.pager.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(5*time.Millisecond, cancel)
	for _, m := range b.model.Sweep() {
		if err = b.matrix(t, s, m); err != nil {
			break
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.End()
	on.Store(false)
	close(block)
	if err := b.sweep(t, -1); err != nil {
		t.Error(err)
	}
	b.close(t)
	if _, err := b.pager.Begin(context.Background()); !errors.Is(err, pager.ErrClosed) {
		t.Errorf("begin after close: %v", err)
	}
	if err := b.pager.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestRowsErrors(t *testing.T) {
	var failing atomic.Bool
	b := streaming(t, func(f vfs.File) vfs.File { return faulty{f, failing.Load} })
	defer b.close(t)
	m := b.model.Bundles[0].Matrices[0]
	visit := func(int, []byte) error { return nil }
	if err := b.pager.Rows(context.Background(), m, []int32{0, int32(m.Rows)}, visit); err == nil {
		t.Error("a row behind the end")
	}
	stop := errors.New("enough")
	err := b.pager.Rows(context.Background(), m, []int32{5, 6, 7, 5}, func(int, []byte) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("the visitor's error became %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.pager.Rows(ctx, m, []int32{1}, visit); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	failing.Store(true)
	if err := b.pager.Rows(context.Background(), m, []int32{9}, visit); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "row 9 of token_embd") {
		t.Errorf("%v", err)
	}
}

func TestPreloadFails(t *testing.T) {
	var reads atomic.Int64
	b := streaming(t, func(f vfs.File) vfs.File {
		return faulty{f, func() bool { return reads.Add(1) > 13 }} // the vectors are there
	})
	defer b.close(t)
	if err := b.pager.Preload(context.Background(), nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
}
