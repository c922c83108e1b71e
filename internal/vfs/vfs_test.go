package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/mem"
	"pgregory.net/rapid"
)

// buffer is off-heap memory for one test.
func buffer(t testing.TB, n int) []byte {
	t.Helper()
	b, err := mem.New(budget.New(1<<40), budget.Staging, n, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Free(); err != nil {
			t.Error(err)
		}
	})
	return b.Bytes()
}

// content is n bytes that differ everywhere.
func content(n int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	r.Read(b)
	return b
}

func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, fs FS, path string) File {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// kinds are the files that must all behave alike.
func kinds(t testing.TB, data []byte) map[string]File {
	direct := open(t, OS(), write(t, data))
	buffered := open(t, OS(), write(t, data))
	if f := buffered.(*osFile); f.Direct() && !f.fallBack(true, os.ErrInvalid) {
		t.Log("direct reads cannot be turned off here")
	}
	return map[string]File{
		"system":   direct,
		"buffered": buffered,
		"bytes":    Bytes("memory", data),
		"string":   Bytes("memory", string(data)),
		"faulty":   Fault(OS(), Plan{}).Wrap(direct),
	}
}

// readRange reads n bytes at off into buf, as all readers do: the enclosing aligned range, of which it
// returns a view. A file that ends before off+n gives io.ErrUnexpectedEOF.
func readRange(f File, buf []byte, off int64, n int) ([]byte, error) {
	if off < 0 || n < 0 || off > f.Size()-int64(n) {
		return nil, fmt.Errorf("%s: read %d bytes at %d of %d: %w", f.Name(), n, off, f.Size(), io.ErrUnexpectedEOF)
	}
	start, size := Span(off, n, f.Align())
	if size > len(buf) {
		return nil, fmt.Errorf("%s: a read of %d bytes needs a buffer of %d, not %d", f.Name(), n, size, len(buf))
	}
	lead := int(off - start)
	got, err := f.ReadAt(buf[:size], start)
	switch {
	case got >= lead+n:
		return buf[lead : lead+n : lead+n], nil
	case err == nil || errors.Is(err, io.EOF):
		err = fmt.Errorf("%s: ends at %d, in a read of %d bytes at %d: %w",
			f.Name(), start+int64(got), n, off, io.ErrUnexpectedEOF)
	}
	return nil, err
}

func TestSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		align := 1 << rapid.IntRange(0, 16).Draw(t, "align")
		off := rapid.Int64Range(0, 1<<40).Draw(t, "off")
		n := rapid.IntRange(0, 1<<24).Draw(t, "n")
		start, size := Span(off, n, align)
		if start%int64(align) != 0 || size%align != 0 || start > off || off+int64(n) > start+int64(size) {
			t.Fatalf("%d bytes at %d by %d: %d at %d", n, off, align, size, start)
		}
		if off-start >= int64(align) || start+int64(size)-off-int64(n) >= int64(align) || size > SpanSize(n, align) {
			t.Fatalf("%d bytes at %d by %d: %d at %d is more than needed", n, off, align, size, start)
		}
	})
}

func TestRange(t *testing.T) {
	data := content(300_001) // the last block is not whole
	buf := buffer(t, 400_000)
	for name, f := range kinds(t, data) {
		t.Run(name, func(t *testing.T) {
			if f.Size() != int64(len(data)) || f.ID().Size != f.Size() {
				t.Fatalf("size %d, id %+v", f.Size(), f.ID())
			}
			rapid.Check(t, func(t *rapid.T) {
				off := rapid.IntRange(0, len(data)).Draw(t, "off")
				n := rapid.IntRange(0, len(data)-off).Draw(t, "n")
				room := buf[:SpanSize(n, f.Align())]
				view, err := readRange(f, room, int64(off), n)
				if err != nil || !bytes.Equal(view, data[off:off+n]) || cap(view) != n {
					t.Fatalf("%d bytes at %d: %d, %v", n, off, len(view), err)
				}
			})
			tail, err := readRange(f, buf, int64(len(data)-7), 7)
			if err != nil || !bytes.Equal(tail, data[len(data)-7:]) {
				t.Errorf("the tail: %x, %v", tail, err)
			}
			for _, bad := range [][2]int64{{300_000, 2}, {300_002, 0}, {-1, 1}, {0, -1}, {1 << 62, 1 << 61}} {
				if _, err := readRange(f, buf, bad[0], int(bad[1])); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%d bytes at %d: %v", bad[1], bad[0], err)
				}
			}
			if _, err := readRange(f, buf[:0], 5, 5); err == nil {
				t.Error("5 bytes were read into none")
			}
		})
	}
}

func TestReadAtEnd(t *testing.T) {
	data := content(10_000)
	buf := buffer(t, 64<<10)
	for name, f := range kinds(t, data) {
		before := Count()
		n, err := f.ReadAt(buf, 0)
		if got := Count().Sub(before); got.Requests > 1 {
			t.Errorf("%s: the end took %d requests", name, got.Requests)
		}
		if n != len(data) || err != io.EOF || !bytes.Equal(buf[:n], data) {
			t.Errorf("%s: more than the file: %d, %v", name, n, err)
		}
		if n, err := f.ReadAt(buf, 64<<10); n != 0 || err != io.EOF {
			t.Errorf("%s: behind the file: %d, %v", name, n, err)
		}
		if n, err := f.ReadAt(nil, 0); n != 0 || err != nil {
			t.Errorf("%s: nothing: %d, %v", name, n, err)
		}
		if _, err := f.ReadAt(buf[:f.Align()], -int64(f.Align())); err == nil {
			t.Errorf("%s: a negative offset was read", name)
		}
	}
}

func TestMisalignedIsRefused(t *testing.T) {
	f := open(t, OS(), write(t, content(100_000)))
	if f.Align() == 1 {
		t.Skip("skipped: no alignment is needed here")
	}
	buf, a := buffer(t, 64<<10), f.Align()
	for _, bad := range []struct {
		p   []byte
		off int64
	}{{buf[:a], 1}, {buf[:a-1], 0}, {buf[1 : a+1], 0}} {
		if _, err := f.ReadAt(bad.p, bad.off); err == nil {
			t.Errorf("%d bytes at %d were read", len(bad.p), bad.off)
		}
	}
}

// A file that becomes shorter while it is open says where it ends.
func TestShrunkFile(t *testing.T) {
	path := write(t, content(100_000))
	f := open(t, OS(), path)
	if err := os.Truncate(path, 50_001); err != nil {
		t.Fatal(err)
	}
	buf, direct := buffer(t, 200_000), f.Direct()
	if view, err := readRange(f, buf, 40_000, 10_001); err != nil || len(view) != 10_001 {
		t.Errorf("up to the new end: %d, %v", len(view), err)
	}
	for _, off := range []int64{50_000, 50_001, 60_000} {
		if _, err := readRange(f, buf, off, 2); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("at %d: %v", off, err)
		}
	}
	if f.Direct() != direct {
		t.Errorf("direct reads were given up: %s", f.Why())
	}
}

// The kernel may return less than was asked, even within a block.
func TestShortReads(t *testing.T) {
	data := content(300_001)
	f := open(t, OS(), write(t, data)).(*osFile)
	calls := 0
	f.read = func(file *os.File, p []byte, off int64) (int, error) {
		if off%int64(f.align) != 0 || len(p)%f.align != 0 || !mem.IsAligned(p, f.align) {
			t.Errorf("%d bytes at %d are asked for again", len(p), off)
		}
		calls++
		n, err := readOnce(file, p, off)
		return min(n, f.align*(1+calls%3)+calls%7), err
	}
	buf := buffer(t, 400_000)
	view, err := readRange(f, buf, 5, len(data)-5)
	if err != nil || !bytes.Equal(view, data[5:]) {
		t.Errorf("%d bytes, %v", len(view), err)
	}
}

func TestConcurrentReads(t *testing.T) {
	data := content(1 << 20)
	for name, f := range kinds(t, data) {
		var wg sync.WaitGroup
		for w := range 8 {
			buf := buffer(t, 128<<10)
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(w)))
				for range 20 {
					off := r.IntN(len(data) - 100_000)
					view, err := readRange(f, buf, int64(off), 100_000)
					if err != nil || !bytes.Equal(view, data[off:off+100_000]) {
						t.Errorf("%s: at %d: %v", name, off, err)
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := OS().Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := OS().Open(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
}

func TestIdentity(t *testing.T) {
	path := write(t, content(100))
	a, b := open(t, OS(), path).ID(), open(t, OS(), path).ID()
	if a != b || a.MTime == 0 || a.Inode == 0 {
		t.Errorf("%+v, %+v", a, b)
	}
	if other := open(t, OS(), write(t, content(100))).ID(); other == a {
		t.Errorf("two files have the identity %+v", a)
	}
	if Bytes("a", "x").ID() == Bytes("b", "x").ID() {
		t.Error("two files in memory have one identity")
	}
}

// Count agrees with the kernel's count of bytes that came from the drive.
func TestCountAgreesWithKernel(t *testing.T) {
	const size = 8 << 20
	f := open(t, OS(), write(t, content(size)))
	before, ok := machine.ReadIO()
	if !ok || !f.Direct() {
		t.Skip("skipped: no direct reads or no kernel count")
	}
	start, buf := Count(), buffer(t, 1<<20)
	for off := int64(0); off < size; off += int64(len(buf)) {
		if _, err := f.ReadAt(buf, off); err != nil {
			t.Fatal(err)
		}
	}
	after, _ := machine.ReadIO()
	got := Count().Sub(start)
	if got.Bytes != size || got.Requests != 8 {
		t.Errorf("counted %+v", got)
	}
	if kernel := after.ReadBytes - before.ReadBytes; kernel < size || kernel > size+size/100 {
		t.Errorf("the kernel counts %d bytes, we %d", kernel, got.Bytes)
	}
}

func TestMeasureDrive(t *testing.T) {
	f := open(t, OS(), write(t, content(5<<20)))
	before := Count()
	p, err := MeasureDrive(f, buffer(t, 4<<20), 30*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Cells) != 3 { // 1 MiB once and four times, 4 MiB once
		t.Errorf("cells %+v", p.Cells)
	}
	for _, c := range p.Cells {
		if c.BytesPerSecond <= 0 || c.BytesPerSecond > p.Best.BytesPerSecond {
			t.Errorf("%+v, best %+v", c, p.Best)
		}
	}
	if got := Count().Sub(before); got.Bytes < (1+4+4)<<20 {
		t.Errorf("only %+v", got)
	}
	small, err := MeasureDrive(f, buffer(t, 64<<10), time.Millisecond)
	if err != nil || len(small.Cells) != 1 || small.Best.Size != 64<<10 {
		t.Errorf("a small buffer: %+v, %v", small, err)
	}
	if p, err := MeasureDrive(Bytes("x", ""), buffer(t, 4096), time.Millisecond); err == nil {
		t.Errorf("an empty file: %+v", p)
	}
	broken := Fault(OS(), Plan{FailRead: 1, FailFor: 1 << 40}).Wrap(f)
	if p, err := MeasureDrive(broken, buffer(t, 1<<20), time.Millisecond); err == nil {
		t.Errorf("a broken drive: %+v", p)
	}
}

func TestProfileDrive(t *testing.T) {
	path := write(t, content(5<<20))
	f := open(t, OS(), path)
	p, err := ProfileDrive(f, buffer(t, 4<<20), 60*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// 4 KiB (where blocks are that small), 64 KiB and 256 KiB in every depth, 1 MiB in three, 4 MiB alone.
	if n := len(p.Cells); n < 10 || n > 19 {
		t.Errorf("%d cells: %+v", n, p.Cells)
	}
	file, err := Device(path)
	folder, err2 := Device(filepath.Dir(path))
	if err != nil || err2 != nil || file != folder || file != f.ID().Dev {
		t.Errorf("devices %x, %x and %x (%v, %v)", file, folder, f.ID().Dev, err, err2)
	}
}
