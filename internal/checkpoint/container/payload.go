package container

import (
	"bufio"
	"fmt"
	"io"
)

// Payload is what the formats' writers share: tensors are announced, Begin writes the header, Write
// the data of all tensors in order, each padded with zeros to the alignment, and Close checks that all
// is there.
type Payload struct {
	format string // for errors
	header func() (parts [][]byte, align int64, err error)
	w      *bufio.Writer
	names  []string
	sizes  []int64
	begun  bool
	align  int64
	at     int   // tensor that is written
	done   int64 // bytes of it
}

// NewPayload writes to w. header is asked once, by Begin, for parts that together end aligned.
func NewPayload(w io.Writer, format string, header func() (parts [][]byte, align int64, err error)) *Payload {
	return &Payload{format: format, header: header, w: bufio.NewWriterSize(w, 32<<10)}
}

// Announce adds a tensor of so many bytes.
func (p *Payload) Announce(name string, size int64) {
	p.names, p.sizes = append(p.names, name), append(p.sizes, size)
}

// Announced is the number of tensors.
func (p *Payload) Announced() int { return len(p.names) }

// Size is the bytes of the tensor that was announced as number i.
func (p *Payload) Size(i int) int64 { return p.sizes[i] }

// Begun reports whether the header was written.
func (p *Payload) Begun() bool { return p.begun }

// Begin writes the header.
func (p *Payload) Begin() error {
	if p.begun {
		return fmt.Errorf("%s: Begin twice", p.format)
	}
	parts, align, err := p.header()
	if err != nil {
		return fmt.Errorf("%s: %w", p.format, err)
	}
	for _, part := range parts {
		if _, err := p.w.Write(part); err != nil {
			return err
		}
	}
	p.begun, p.align = true, align
	return nil
}

// Padding is the bytes that follow n bytes up to a multiple of align.
func Padding(n, align int64) int64 { return (align - n%align) % align }

// Write writes data, of one tensor or of several in order.
func (p *Payload) Write(b []byte) (int, error) {
	if !p.begun {
		return 0, fmt.Errorf("%s: Write before Begin", p.format)
	}
	written := 0
	for len(b) > 0 {
		if err := p.next(); err != nil {
			return written, err
		}
		if p.at == len(p.sizes) {
			return written, fmt.Errorf("%s: %d bytes more than all tensors have", p.format, len(b))
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

// Close checks that every tensor is complete and flushes. It does not close the underlying writer.
func (p *Payload) Close() error {
	if !p.begun {
		if err := p.Begin(); err != nil {
			return err
		}
	}
	if err := p.next(); err != nil {
		return err
	}
	if p.at < len(p.sizes) {
		return fmt.Errorf("%s: tensor %s has only %d of its %d bytes", p.format, Name(p.names[p.at]), p.done, p.sizes[p.at])
	}
	return p.w.Flush()
}
