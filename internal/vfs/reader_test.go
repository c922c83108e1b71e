package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestReader(t *testing.T) {
	data := content(100_003)
	buf := buffer(t, 16<<10)
	for name, f := range kinds(t, data) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { walk(t, f, data, buf) })
			r, err := NewReader(f, 77, 50_000, buf)
			if err != nil {
				t.Fatal(err)
			}
			if err := iotest.TestReader(struct{ io.Reader }{r}, data[77:50_077]); err != nil {
				t.Error(err)
			}
		})
	}
}

// walk reads pieces of random sizes and compares with the data.
func walk(t *rapid.T, f File, data, buf []byte) {
	at := rapid.IntRange(0, len(data)).Draw(t, "off")
	end := at + rapid.IntRange(0, len(data)-at).Draw(t, "n")
	room := buf[:rapid.IntRange(f.Align(), len(buf)).Draw(t, "buffer")]
	r, err := NewReader(f, int64(at), int64(end-at), room)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		n := rapid.IntRange(0, 20_000).Draw(t, "step")
		p := make([]byte, n)
		got, err := io.ReadFull(r, p)
		if want := min(n, end-at); got != want || !bytes.Equal(p[:got], data[at:at+got]) || (err == nil) != (got == n) {
			t.Fatalf("read %d at %d: %d, %v", n, at, got, err)
		}
		if at += got; r.Left() != int64(end-at) {
			t.Fatalf("%d left at %d, not %d", r.Left(), at, end-at)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	f := open(t, OS(), write(t, content(10_000)))
	buf := buffer(t, 4096)
	for _, bad := range [][2]int64{{-1, 1}, {0, -1}, {0, 10_001}, {10_001, 0}} {
		if _, err := NewReader(f, bad[0], bad[1], buf); err == nil {
			t.Errorf("%d bytes at %d were taken", bad[1], bad[0])
		}
	}
	if _, err := NewReader(f, 0, 1, buf[:0]); err == nil {
		t.Error("no buffer was taken")
	}
}

func TestStream(t *testing.T) {
	open := Opener(func(name string) (File, error) {
		if name != "there" {
			return nil, fs.ErrNotExist
		}
		return Bytes(name, "content"), nil
	})
	var got []byte
	found, err := open.Stream("there", func(r io.Reader) (err error) { got, err = io.ReadAll(r); return err })
	if !found || err != nil || string(got) != "content" {
		t.Errorf("%v %q, %v", found, got, err)
	}
	if found, err := open.Stream("absent", func(io.Reader) error { return io.ErrNoProgress }); found || err != nil {
		t.Errorf("a file that is not there: %v, %v", found, err)
	}
	if _, err := open.Stream("there", func(io.Reader) error { return io.ErrNoProgress }); !errors.Is(err, io.ErrNoProgress) || !strings.HasPrefix(err.Error(), "there: ") {
		t.Errorf("%v", err)
	}
}

func TestReaderOnTruncatedAndBrokenFiles(t *testing.T) {
	f := open(t, OS(), write(t, content(100_000)))
	for plan, want := range map[*Plan]error{
		{TruncateAt: 50_001}:                 io.ErrUnexpectedEOF,
		{FailRead: 3, Err: io.ErrNoProgress}: io.ErrNoProgress,
	} {
		r, err := NewReader(Fault(OS(), *plan).Wrap(f), 0, 100_000, buffer(t, 4096))
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
		if !errors.Is(err, want) || n == 0 || n > 50_001 {
			t.Errorf("%+v: %d bytes, %v", *plan, n, err)
		}
	}
}
