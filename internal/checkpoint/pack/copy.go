package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/vfs"
)

// filled is a piece that was read, or why it was not.
type filled struct {
	b   []byte
	err error
}

// reading hands pieces over: those that were read come through full, and go back through free.
type reading struct {
	full chan filled
	free chan []byte
}

// read puts pieces together from the next one on, some ahead of who takes them.
func (w *writer) read(ctx context.Context) reading {
	r := reading{make(chan filled, queue), make(chan []byte, queue+2)}
	memory := w.Memory
	for range queue + 2 {
		r.free <- memory[:PieceBytes:PieceBytes]
		memory = memory[PieceBytes:]
	}
	go func(i int64) {
		defer close(r.full)
		for ; i < w.head.pieces; i++ {
			var x filled
			select {
			case <-ctx.Done():
				return
			case b := <-r.free:
				piece := w.Manifest.Piece(i)
				x.b = b[:piece.Bytes]
				x.err = w.fill(x.b, piece.Offset, memory)
			}
			select {
			case r.full <- x:
			case <-ctx.Done():
				return
			}
			if x.err != nil {
				return
			}
		}
	}(w.next)
	return r
}

// fill puts together what the packed file holds from offset at on, by reads into buf.
func (w *writer) fill(b []byte, at int64, buf []byte) error {
	clear(b)
	end := at + int64(len(b))
	i, _ := slices.BinarySearchFunc(w.Parts, at, func(p Part, at int64) int {
		if p.At+p.Bytes <= at {
			return -1
		}
		return 1
	})
	for ; i < len(w.Parts) && w.Parts[i].At < end; i++ {
		p := &w.Parts[i]
		from, to := max(p.At, at), min(p.At+p.Bytes, end)
		if err := readInto(b[from-at:to-at], p.File, p.Offset+from-p.At, buf); err != nil {
			return err
		}
	}
	return nil
}

// readInto reads the bytes of a file at off, of which the enclosing aligned range fits in buf.
func readInto(b []byte, f vfs.File, off int64, buf []byte) error {
	if f.Align() == 1 {
		n, err := f.ReadAt(b, off)
		return short(f, off, n, len(b), err)
	}
	start, size := vfs.Span(off, len(b), f.Align())
	buf = mem.AlignUp(buf, f.Align())[:size]
	n, err := f.ReadAt(buf, start)
	lead := int(off - start)
	if err := short(f, start, n, lead+len(b), err); err != nil {
		return err
	}
	copy(b, buf[lead:])
	return nil
}

// short is what a read that returned n of at least want bytes means.
func short(f vfs.File, off int64, n, want int, err error) error {
	switch {
	case n >= want:
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("%s: ends at %d: %w", f.Name(), off+int64(n), io.ErrUnexpectedEOF)
	}
	return err
}
