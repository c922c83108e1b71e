package vfs

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"
)

func TestFaults(t *testing.T) {
	data := content(20_000)
	path := write(t, data)
	buf := buffer(t, 32<<10)

	var delayed []int64
	sys := Fault(OS(), Plan{
		FailRead: 2, FailFor: 2, Flip: []int64{5, 19_999, 1 << 40},
		Delay: func(read int64) time.Duration { delayed = append(delayed, read); return 0 },
	})
	f := open(t, sys, path)
	want := bytes.Clone(data)
	want[5] ^= 0xFF
	want[19_999] ^= 0xFF
	for read := 1; read <= 4; read++ {
		n, err := f.ReadAt(buf, 0)
		if read == 2 || read == 3 {
			if !errors.Is(err, syscall.EIO) || n != 0 {
				t.Errorf("read %d: %d, %v", read, n, err)
			}
		} else if err != io.EOF || !bytes.Equal(buf[:n], want) {
			t.Errorf("read %d: %d bytes, %v", read, n, err)
		}
	}
	if sys.Reads() != 4 || len(delayed) != 4 || delayed[3] != 4 {
		t.Errorf("%d reads, delays of %v", sys.Reads(), delayed)
	}

	short := open(t, Fault(OS(), Plan{TruncateAt: 10_000}), path)
	if short.Size() != 20_000 {
		t.Errorf("size %d", short.Size())
	}
	if n, err := short.ReadAt(buf, 0); n != 10_000 || err != io.EOF {
		t.Errorf("truncated: %d, %v", n, err)
	}
	if n, err := short.ReadAt(buf, 16<<10); n != 0 || err != io.EOF {
		t.Errorf("behind the cut: %d, %v", n, err)
	}

	if _, err := Fault(OS(), Plan{OpenErr: syscall.EACCES}).Open(path); !errors.Is(err, syscall.EACCES) {
		t.Errorf("open: %v", err)
	}
	healthy := open(t, Fault(OS(), Plan{Match: "other", OpenErr: syscall.EACCES, FailRead: 1}), path)
	if n, err := healthy.ReadAt(buf, 0); n != len(data) || err != io.EOF {
		t.Errorf("a file that does not match: %d, %v", n, err)
	}
}

func TestListing(t *testing.T) {
	path := write(t, content(5))
	sys := Fault(OS(), Plan{})
	info, err := sys.Stat(path)
	if err != nil || info.Size() != 5 {
		t.Errorf("%v, %v", info, err)
	}
	list, err := sys.ReadDir(path[:len(path)-len("/file")])
	if err != nil || len(list) != 1 || list[0].Name() != "file" {
		t.Errorf("%v, %v", list, err)
	}
}
