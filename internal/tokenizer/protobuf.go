package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Wire types of Protocol Buffers.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// A protoReader reads the fields of one message.
type protoReader struct {
	r   *bufio.Reader
	buf []byte
}

func newProtoReader(r io.Reader) *protoReader {
	return &protoReader{r: bufio.NewReaderSize(r, 32<<10)}
}

// message returns a reader of a message that is in memory.
func message(b []byte) *protoReader {
	return &protoReader{r: bufio.NewReaderSize(bytes.NewReader(b), 16)}
}

func damagedProto(what string) error { return formatError("damaged protocol buffer: %s", what) }

// A protoField is a field: its number and wire type, and its value if that is a number.
type protoField struct {
	number, wire uint64
	value        uint64 // the number, or the length of what follows
}

// next reads a field up to its value; false at the end.
func (p *protoReader) next() (f protoField, ok bool, err error) {
	if _, err := p.r.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return f, false, err
	}
	tag, err := p.varint()
	if err != nil {
		return f, false, err
	}
	f.number, f.wire = tag>>3, tag&7
	switch f.wire {
	case wireVarint, wireBytes:
		f.value, err = p.varint()
	case wire64, wire32:
		n := 8
		if f.wire == wire32 {
			n = 4
		}
		var b [8]byte
		if _, err = io.ReadFull(p.r, b[:n]); err == nil {
			f.value = binary.LittleEndian.Uint64(b[:])
		}
	default:
		return f, false, damagedProto("a field of an unknown type")
	}
	return f, err == nil, ended(err)
}

// ended is for reads in the middle of a message.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damagedProto("it ends too early")
	}
	return err
}

func (p *protoReader) varint() (uint64, error) {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		b, err := p.r.ReadByte()
		if err != nil {
			return 0, ended(err)
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, damagedProto("a number is too long")
}

// bytes reads the value of a field of bytes, at most limit; it is valid until the next.
func (p *protoReader) bytes(f protoField, limit int64) ([]byte, error) {
	if f.wire != wireBytes || f.value > uint64(limit) {
		return nil, damagedProto("a field is not of the type or length that it should be")
	}
	p.buf = p.buf[:0]
	for left := int(f.value); left > 0; {
		n := min(left, 32<<10)
		p.buf = append(p.buf, make([]byte, n)...)
		if _, err := io.ReadFull(p.r, p.buf[len(p.buf)-n:]); err != nil {
			return nil, ended(err)
		}
		left -= n
	}
	return p.buf, nil
}

// skip passes the value of a field.
func (p *protoReader) skip(f protoField) error {
	if f.wire != wireBytes {
		return nil
	}
	if f.value > maxBlob {
		return damagedProto("a field is too long")
	}
	_, err := io.CopyN(io.Discard, p.r, int64(f.value))
	return ended(err)
}

// each calls read for every field. It reads the value of a field of bytes, or skips it.
func (p *protoReader) each(read func(f protoField) error) error {
	for {
		f, ok, err := p.next()
		if err != nil || !ok {
			return err
		}
		if err := read(f); err != nil {
			return err
		}
	}
}
