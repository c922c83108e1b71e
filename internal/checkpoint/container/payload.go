package container

import (
	"fmt"
	"io"
)

// Payload writes the data of tensors in order, each padded with zeros to the alignment.
type Payload struct {
	w     io.Writer
	names []string
	sizes []int64
	align int64
	at    int   // tensor that is written
	done  int64 // bytes of it
}

// NewPayload writes to w, whose position is aligned. names are for errors.
func NewPayload(w io.Writer, names []string, sizes []int64, align int64) *Payload {
	return &Payload{w: w, names: names, sizes: sizes, align: align}
}

// Padding is the bytes that follow n bytes up to a multiple of align.
func Padding(n, align int64) int64 { return (align - n%align) % align }

// Write writes data of the tensor that is due, and of those after it.
func (p *Payload) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		if err := p.next(); err != nil {
			return written, err
		}
		if p.at == len(p.sizes) {
			return written, fmt.Errorf("%d bytes more than all tensors have", len(b))
		}
		n, err := p.w.Write(b[:min(int64(len(b)), p.sizes[p.at]-p.done)])
		written, p.done = written+n, p.done+int64(n)
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}

// next pads and leaves the tensors that are complete.
func (p *Payload) next() error {
	for p.at < len(p.sizes) && p.done == p.sizes[p.at] {
		if n := Padding(p.done, p.align); n > 0 {
			if _, err := p.w.Write(make([]byte, n)); err != nil {
				return err
			}
		}
		p.at, p.done = p.at+1, 0
	}
	return nil
}

// Close pads the last tensor; it is an error if one is not complete. It does not close the
// underlying writer.
func (p *Payload) Close() error {
	if err := p.next(); err != nil {
		return err
	}
	if p.at < len(p.sizes) {
		return fmt.Errorf("tensor %s has only %d of its %d bytes", Name(p.names[p.at]), p.done, p.sizes[p.at])
	}
	return nil
}
