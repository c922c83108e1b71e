package vfs

import (
	"bytes"
	"errors"
	"io"
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

// walk reads and skips at random and compares with the data.
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
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			err := r.Skip(int64(n))
			if (err == nil) != (n <= end-at) {
				t.Fatalf("skip %d of %d: %v", n, end-at, err)
			}
			if err == nil {
				at += n
			}
		case 1:
			p := make([]byte, n)
			got, err := io.ReadFull(r, p)
			if want := min(n, end-at); got != want || !bytes.Equal(p[:got], data[at:at+got]) || (err == nil) != (got == n) {
				t.Fatalf("read %d at %d: %d, %v", n, at, got, err)
			}
			at += got
		case 2:
			b, err := r.ReadByte()
			if (err == nil) != (at < end) || err == nil && b != data[at] || err != nil && err != io.EOF {
				t.Fatalf("byte at %d: %x, %v", at, b, err)
			}
			if err == nil {
				at++
			}
		}
		if r.Offset() != int64(at) || r.Left() != int64(end-at) {
			t.Fatalf("offset %d, left %d; want %d, %d", r.Offset(), r.Left(), at, end-at)
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
	r, err := NewReader(f, 0, 10, buf)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Skip(11); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a skip over the end: %v", err)
	}
	if err := r.Skip(-1); err == nil {
		t.Error("a skip backwards was taken")
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
