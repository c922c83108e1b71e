package trace

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Reader reads a trace that may be anything: every number is checked, and memory grows with what was
// read, not with what a number says.
type Reader struct {
	header Header
	in     *bufio.Reader
	at     int64
	crc    uint32
	steps  int
	visits int
	layer  int
	ids    []uint16
	chosen []int32 // by expert: the number of the row that chose it last, to find one that is named twice
	row    int32
	done   error
}

// NewReader reads the header.
func NewReader(r io.Reader) (*Reader, error) {
	t := &Reader{in: bufio.NewReaderSize(r, writerBuffer), layer: -1}
	var line []byte
	for len(line) == 0 || line[len(line)-1] != '\n' {
		b, err := t.byte()
		if err != nil {
			return nil, t.cut(err)
		}
		if line = append(line, b); len(line) > maxHeader {
			return nil, &FormatError{What: "this is no trace of spillway"}
		}
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(&t.header); err != nil {
		return nil, &FormatError{What: "this is no trace of spillway"}
	}
	if err := t.header.check(); err != nil {
		return nil, err
	}
	t.chosen = make([]int32, t.header.Experts)
	return t, nil
}

// Header of the trace.
func (t *Reader) Header() Header { return t.header }

// Next returns the next visit, and io.EOF after the last one if the trace is whole.
func (t *Reader) Next() (Record, error) {
	if t.done != nil {
		return Record{}, t.done
	}
	r, err := t.next()
	t.done = err
	return r, err
}

func (t *Reader) next() (Record, error) {
	for {
		kind, err := t.byte()
		if err != nil {
			return Record{}, t.cut(err)
		}
		switch kind {
		case recordStep:
			t.steps++
			t.layer = -1
		case recordVisit:
			return t.visit()
		case recordEnd:
			return Record{}, t.end()
		default:
			return Record{}, t.bad("there is no kind of record %d", kind)
		}
	}
}

func (t *Reader) visit() (Record, error) {
	var numbers [3]uint64
	for i := range numbers {
		n, err := t.number()
		if err != nil {
			return Record{}, err
		}
		numbers[i] = n
	}
	layer, decode, prefill := numbers[0], numbers[1], numbers[2]
	switch {
	case t.steps == 0:
		return Record{}, t.bad("a layer before the first step")
	case layer >= uint64(t.header.Layers) || int(layer) <= t.layer:
		return Record{}, t.bad("layer %d of %d follows layer %d", layer, t.header.Layers, t.layer)
	case decode >= maxRows || prefill >= maxRows || decode+prefill < 1 || decode+prefill >= maxRows, int(decode+prefill) > maxIDs/t.header.Used:
		return Record{}, t.bad("a layer with %d and %d rows", decode, prefill)
	}
	t.layer = int(layer)
	t.visits++
	r := Record{Step: t.steps - 1, Layer: t.layer, Decode: int(decode), Prefill: int(prefill)}
	t.ids = t.ids[:0]
	for range decode + prefill {
		if err := t.choices(); err != nil {
			return Record{}, err
		}
	}
	r.Experts = t.ids
	return r, nil
}

// choices reads the experts of one row.
func (t *Reader) choices() error {
	if t.row++; t.row < 0 {
		clear(t.chosen)
		t.row = 1
	}
	for range t.header.Used {
		id, err := t.id()
		if err != nil {
			return t.cut(err)
		}
		if id >= t.header.Experts {
			return t.bad("expert %d of %d", id, t.header.Experts)
		}
		if t.chosen[id] == t.row {
			return t.bad("a row with expert %d twice", id)
		}
		t.chosen[id] = t.row
		t.ids = append(t.ids, uint16(id))
	}
	return nil
}

func (t *Reader) id() (int, error) {
	low, err := t.byte()
	if err != nil || !t.header.wide() {
		return int(low), err
	}
	high, err := t.byte()
	return int(low) | int(high)<<8, err
}

// end checks the counts and the checksum.
func (t *Reader) end() error {
	steps, err := t.number()
	if err != nil {
		return err
	}
	visits, err := t.number()
	if err != nil {
		return err
	}
	want := t.crc
	var sum [4]byte
	for i := range sum {
		if sum[i], err = t.byte(); err != nil {
			return t.cut(err)
		}
	}
	switch _, err := t.in.ReadByte(); {
	case err == nil:
		return t.bad("something follows the end")
	case err != io.EOF:
		return err
	case steps != uint64(t.steps) || visits != uint64(t.visits) || binary.LittleEndian.Uint32(sum[:]) != want:
		return t.bad("the trace is damaged: its checksum is wrong")
	}
	return io.EOF
}

func (t *Reader) byte() (byte, error) {
	b, err := t.in.ReadByte()
	if err == nil {
		t.at++
		t.crc = update(t.crc, b)
	}
	return b, err
}

// update is crc32.Update with one byte.
func update(crc uint32, b byte) uint32 {
	crc = ^crc
	return ^(crc32.IEEETable[byte(crc)^b] ^ crc>>8)
}

// number reads an unsigned LEB128 of at most 63 bits.
func (t *Reader) number() (uint64, error) {
	var n uint64
	for shift := 0; shift < 63; shift += 7 {
		b, err := t.byte()
		if err != nil {
			return 0, t.cut(err)
		}
		if n |= uint64(b&0x7f) << shift; b < 0x80 {
			return n, nil
		}
	}
	return 0, t.bad("a number that is too large")
}

// cut is an error of the file, or says that the trace ends too early.
func (t *Reader) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return t.bad("the trace ends in the middle: the run that wrote it did not finish")
	}
	return err
}

func (t *Reader) bad(format string, args ...any) error {
	return &FormatError{At: t.at, What: fmt.Sprintf(format, args...)}
}
