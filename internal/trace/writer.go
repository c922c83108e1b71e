package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Writer writes a trace as it comes about, through a buffer of a few KiB. The first error of the
// destination ends it and is what every later call returns.
type Writer struct {
	header Header
	out    *bufio.Writer
	crc    uint32
	steps  uint64
	visits uint64
	layer  int // of the step's last visit, -1 if it had none
	line   []byte
	failed error
}

const writerBuffer = 16 << 10

// NewWriter writes the header; Format and Version are filled in.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	line, err := h.line()
	if err != nil {
		return nil, err
	}
	t := &Writer{header: h, out: bufio.NewWriterSize(w, writerBuffer), layer: -1}
	t.put(line)
	return t, t.failed
}

// Step begins a forward pass.
func (t *Writer) Step() error {
	t.steps++
	t.layer = -1
	t.put([]byte{recordStep})
	return t.failed
}

// Visit writes which experts the rows of a layer chose: Used ids for each row, best first, those of decode rows of running
// answers before those of prompts. Layers rise within a step.
func (t *Writer) Visit(layer, decode int, experts []int32) error {
	rows := len(experts) / t.header.Used
	switch {
	case t.failed != nil:
		return t.failed
	case t.steps == 0 || layer <= t.layer || layer >= t.header.Layers:
		return fmt.Errorf("layer %d of a trace with %d follows layer %d", layer, t.header.Layers, t.layer)
	case rows*t.header.Used != len(experts) || rows < 1 || rows >= maxRows || len(experts) > maxIDs || decode < 0 || decode > rows:
		return fmt.Errorf("%d experts of %d answers are no rows of %d", len(experts), decode, t.header.Used)
	}
	t.layer = layer
	t.visits++
	t.line = append(t.line[:0], recordVisit)
	t.line = binary.AppendUvarint(t.line, uint64(layer))
	t.line = binary.AppendUvarint(t.line, uint64(decode))
	t.line = binary.AppendUvarint(t.line, uint64(rows-decode))
	for _, e := range experts {
		if e < 0 || int(e) >= t.header.Experts {
			return t.fail(fmt.Errorf("expert %d of %d", e, t.header.Experts))
		}
		t.line = append(t.line, byte(e))
		if t.header.wide() {
			t.line = append(t.line, byte(e>>8))
		}
		if len(t.line) > 1024 {
			t.put(t.line)
			t.line = t.line[:0]
		}
	}
	t.put(t.line)
	return t.failed
}

// Close ends the trace and flushes it; the destination stays open.
func (t *Writer) Close() error {
	t.line = append(t.line[:0], recordEnd)
	t.line = binary.AppendUvarint(t.line, t.steps)
	t.line = binary.AppendUvarint(t.line, t.visits)
	t.put(t.line)
	t.put(binary.LittleEndian.AppendUint32(t.line[:0], t.crc))
	if t.failed == nil {
		t.fail(t.out.Flush())
	}
	failed := t.failed
	if failed == nil {
		t.failed = errors.New("the trace is closed")
	}
	return failed
}

func (t *Writer) fail(err error) error {
	if t.failed == nil {
		t.failed = err
	}
	return err
}

func (t *Writer) put(b []byte) {
	if t.failed != nil {
		return
	}
	t.crc = crc32.Update(t.crc, crc32.IEEETable, b)
	_, t.failed = t.out.Write(b)
}
