package vfs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resident is how many pages of a file are in the page cache.
func resident(t *testing.T, path string) (n int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	pages := make([]byte, (len(m)+os.Getpagesize()-1)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&pages[0])))
	if errno != 0 {
		t.Fatal(errno)
	}
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}

// cold writes a file and takes it out of the page cache, or skips where that is not possible.
func cold(t *testing.T, data []byte) string {
	t.Helper()
	path := write(t, data)
	if n := resident(t, path); n == 0 {
		t.Fatal("a file just written is not in the page cache: this test cannot fail")
	}
	if err := DropCache(path); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, path); n > 0 {
		t.Skipf("skipped: %d pages stay in the page cache here", n)
	}
	return path
}

func TestNothingStaysCached(t *testing.T) {
	data := content(3<<20 + 77)
	buf := buffer(t, 4<<20)
	for _, direct := range []bool{true, false} {
		path := cold(t, data)
		f := open(t, OS(), path).(*osFile)
		if !direct && f.Direct() && !f.fallBack(true, unix.EINVAL) {
			t.Fatal("no fallback")
		}
		if f.Direct() != direct {
			t.Logf("direct reads are refused: %s", f.Why())
		}
		for _, off := range []int64{0, 1 << 19, 2<<20 + 4096} {
			before := Count()
			if _, err := f.ReadAt(buf[:1<<19], off); err != nil {
				t.Fatal(err)
			}
			if got := Count().Sub(before); !f.Direct() && got.Requests < 1<<19/cachedPiece {
				t.Errorf("a buffered read was made in %d pieces", got.Requests)
			}
			if n := resident(t, path); n > 0 {
				t.Errorf("direct %v: %d pages stay cached after a read at %d", direct, n, off)
			}
		}
		r, err := NewReader(f, 100, f.Size()-100, buf[:64<<10])
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, struct{ io.Reader }{r}); n != f.Size()-100 || err != nil {
			t.Fatalf("read %d: %v", n, err)
		}
		if n := resident(t, path); n > 0 {
			t.Errorf("direct %v: %d pages stay cached", direct, n)
		}
	}
}

// A file system that refuses direct reads only when they happen.
func TestFallbackAtRead(t *testing.T) {
	data := content(100_000)
	f := open(t, OS(), write(t, data)).(*osFile)
	if !f.Direct() || f.Align() == 1 {
		t.Skip("skipped: no direct reads here")
	}
	f.align = 1 // now nothing keeps misaligned requests from the kernel, which refuses them
	if err := f.probe(); err != nil || f.Direct() {
		t.Errorf("after a probe: direct %v, %v", f.Direct(), err)
	}
	f = open(t, OS(), write(t, data)).(*osFile)
	f.align = 1
	buf := buffer(t, 100_000)
	view, err := readRange(f, buf, 333, 50_001)
	if err != nil || !bytes.Equal(view, data[333:50_334]) {
		t.Fatalf("%d bytes, %v", len(view), err)
	}
	if f.Direct() || f.Why() == "" {
		t.Errorf("direct %v, why %q", f.Direct(), f.Why())
	}
}

func TestFileSystemInMemory(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "spillway-test-")
	if err != nil {
		t.Skip("skipped: no /dev/shm")
	}
	defer os.RemoveAll(dir)
	data := content(700_001)
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, OS(), path)
	if f.Direct() || f.Why() == "" || f.Align() != 1 {
		t.Errorf("direct %v, why %q, align %d", f.Direct(), f.Why(), f.Align())
	}
	view, err := readRange(f, buffer(t, 1<<20), 1, 700_000)
	if err != nil || !bytes.Equal(view, data[1:]) {
		t.Errorf("%d bytes, %v", len(view), err)
	}
}

func TestPipeIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip("skipped: ", err)
	}
	if _, err := OS().Open(path); err == nil {
		t.Error("a pipe was opened") // waiting for its writer would hang instead
	}
}

func TestClosedFile(t *testing.T) {
	f, err := OS().Open(write(t, content(10_000)))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(buffer(t, 4096), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read of a closed file: %v", err)
	}
}
