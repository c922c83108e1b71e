// Package gguf reads and writes the container of GGUF, versions 2 and 3
// (github.com/ggml-org/ggml/blob/master/docs/gguf.md).
package gguf

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

const (
	magic = "GGUF"
	// DefaultAlignment of tensor data, where general.alignment does not say otherwise.
	DefaultAlignment = 32

	maxKeys    = 1 << 16
	maxTensors = 1 << 20
	maxKey     = 1<<16 - 1 // bytes; the specification's limit
	maxName    = 64        // bytes; the specification's limit
	maxDims    = 4
	// firstAlloc bounds what is allocated for a count that the file's size allows.
	firstAlloc = 4096
	// keepTotal bounds the keys and strings that a table keeps in memory.
	keepTotal = 8 << 20
)

// Is reports whether a file begins as GGUF does.
func Is(f vfs.File) bool {
	b, err := container.NewReader(f, 0, int64(len(magic))).Next(len(magic))
	return err == nil && string(b) == magic
}

// reader is one pass over a header.
type reader struct {
	*container.Reader
	path    string
	size    int64
	scratch []byte
}

// fail is an error about something in the file.
func (r *reader) fail(where, format string, args ...any) error {
	return &container.Error{Path: r.path, Where: where, What: fmt.Sprintf(format, args...)}
}

// wrap makes an error of what a read returned: too short and malformed are the file's fault, the
// rest is the drive's.
func (r *reader) wrap(where string, err error) error {
	var drive *container.ReadError
	switch {
	case err == nil:
		return nil
	case container.Truncated(err):
		return r.fail(where, "the file ends inside it, at byte %d", r.size)
	case errors.As(err, &drive):
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return r.fail(where, "%v", err)
}

// Read reads and validates a header. It reads no tensor data. A file that is
// damaged or not supported gives a *container.Error.
func Read(f vfs.File) (*container.Header, error) {
	r := &reader{Reader: container.NewReader(f, 0, f.Size()), path: f.Name(), size: f.Size()}
	h := &container.Header{Alignment: DefaultAlignment}
	tensors, keys, err := r.start(h)
	if err != nil {
		return nil, err
	}
	if err := r.metadata(f, h, keys); err != nil {
		return nil, err
	}
	h.MetaEnd = r.Offset()
	if h.Tensors, err = r.tensors(tensors); err != nil {
		return nil, err
	}
	return h, r.place(h)
}

// start reads magic, version and counts.
func (r *reader) start(h *container.Header) (tensors, keys uint64, err error) {
	m, err := r.Next(4)
	if container.Truncated(err) {
		return 0, 0, r.fail("", "not a GGUF file: it has only %d bytes", r.size)
	}
	if err != nil {
		return 0, 0, r.wrap("", err)
	}
	switch s := string(m); s {
	case magic:
	case "lmgg", "tjgg", "algg", "fmgg":
		return 0, 0, r.fail("", "a GGML file from before GGUF, which is not supported; convert the model again")
	default:
		return 0, 0, r.fail("", "not a GGUF file: it begins with %q", s)
	}
	version, err := r.Uint32()
	if err != nil {
		return 0, 0, r.wrap("version", err)
	}
	if err := r.checkVersion(version); err != nil {
		return 0, 0, err
	}
	h.Version = int(version)
	if tensors, err = r.Uint64(); err == nil {
		keys, err = r.Uint64()
	}
	if err != nil {
		return 0, 0, r.wrap("counts", err)
	}
	// A key takes at least 13 bytes, a tensor 24.
	if left := uint64(r.Left()); keys > left/13 || tensors > left/24 {
		return 0, 0, r.fail("", "%d keys and %d tensors do not fit into a file of %d bytes", keys, tensors, r.size)
	}
	if keys > maxKeys || tensors > maxTensors {
		return 0, 0, r.fail("", "%d keys and %d tensors; at most %d and %d are supported", keys, tensors, maxKeys, maxTensors)
	}
	return tensors, keys, nil
}

func (r *reader) checkVersion(v uint32) error {
	e := &container.Error{Path: r.path}
	switch {
	case v == 2 || v == 3:
		return nil
	case v == 1:
		e.What, e.Hint = "GGUF version 1 is not supported", "convert the model again: current tools write version 3"
	case v&0xffff == 0:
		e.What = fmt.Sprintf("a big-endian GGUF file (version %d)", bits.ReverseBytes32(v))
		e.Hint = "only little-endian files are supported"
	default:
		e.What = fmt.Sprintf("GGUF version %d is not supported", v)
		e.Hint = "versions 2 and 3 are"
	}
	return e
}

// metadata reads all keys and the alignment.
func (r *reader) metadata(f vfs.File, h *container.Header, n uint64) error {
	entries := make([]container.Entry, 0, min(n, firstAlloc))
	kept := 0
	for i := range n {
		e, err := r.entry(i)
		if err != nil {
			return err
		}
		if kept += len(e.Key) + len(e.Text()); kept > keepTotal {
			return r.fail("key "+container.Name(e.Key), "the keys and strings up to here have more than %d bytes", keepTotal)
		}
		entries = append(entries, e)
	}
	table, duplicate, ok := container.NewTable(f, entries)
	if !ok {
		return r.fail("key "+container.Name(duplicate), "it is there twice")
	}
	h.Meta = table
	const key = "general.alignment"
	v := table.Lookup(key)
	if v == nil {
		return nil
	}
	a, ok := v.Uint()
	if !ok || a == 0 || a&(a-1) != 0 || a > math.MaxInt32 {
		return r.fail("key "+container.Name(key), "%v is not an alignment; a power of two is", v)
	}
	h.Alignment = int64(a)
	return nil
}

// entry reads key number i.
func (r *reader) entry(i uint64) (e container.Entry, err error) {
	if e.Key, err = r.name(maxKey); err != nil {
		return e, r.wrap(fmt.Sprintf("key %d", i), err)
	}
	kind, err := r.Uint32()
	if err == nil {
		e.Value, err = container.ReadValue(r.Reader, container.Kind(kind))
	}
	if err != nil {
		return e, r.wrap("key "+container.Name(e.Key), err)
	}
	return e, nil
}

// name reads a key's or tensor's name of at most limit bytes.
func (r *reader) name(limit int) (string, error) {
	n, err := r.Uint64()
	if err != nil {
		return "", err
	}
	if n > uint64(limit) {
		start, _ := r.Next(int(min(r.Left(), 32)))
		return "", fmt.Errorf("its name, %q…, has %d bytes; at most %d are allowed", start, n, limit)
	}
	b, err := r.Append(r.scratch[:0], int(n))
	r.scratch = b
	return string(b), err
}

// tensors reads all tensor infos; their offsets are still relative to the data.
func (r *reader) tensors(n uint64) ([]container.Tensor, error) {
	out := make([]container.Tensor, 0, min(n, firstAlloc))
	for i := range n {
		t, err := r.tensor(i)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	name := func(i int) string { return out[i].Name }
	if i := container.Duplicate(container.ByName(len(out), name), name); i >= 0 {
		return nil, r.fail(tensorName(out[i].Name), "it is there twice")
	}
	return out, nil
}

func tensorName(name string) string { return "tensor " + container.Name(name) }

// tensor reads tensor number i.
func (r *reader) tensor(i uint64) (t container.Tensor, err error) {
	if t.Name, err = r.name(maxName); err != nil {
		return t, r.wrap(fmt.Sprintf("tensor %d", i), err)
	}
	if err = r.describe(&t); err == nil {
		err = Measure(&t)
	}
	if err != nil {
		return t, r.wrap(tensorName(t.Name), err)
	}
	return t, nil
}

// describe reads what follows a tensor's name.
func (r *reader) describe(t *container.Tensor) error {
	dims, err := r.Uint32()
	if err != nil {
		return err
	}
	if dims > maxDims {
		return fmt.Errorf("%d dimensions; at most %d are allowed", dims, maxDims)
	}
	t.Shape = make([]int, dims)
	for d := range t.Shape {
		n, err := r.Uint64()
		if err != nil {
			return err
		}
		if n > math.MaxInt {
			return fmt.Errorf("dimension %d is %d, which is too large", d, n)
		}
		t.Shape[len(t.Shape)-1-d] = int(n) // innermost first in the file
	}
	kind, err := r.Uint32()
	if err != nil {
		return err
	}
	offset, err := r.Uint64()
	if err != nil {
		return err
	}
	if offset > math.MaxInt64 {
		return fmt.Errorf("its offset, %d, is beyond the end of the file", offset)
	}
	t.Type, t.Offset = quant.Type(kind), int64(offset)
	return nil
}

// MetaStart is where the first key of a file begins.
const MetaStart = 24

// Measure sets a tensor's DType and Bytes by its Type and Shape.
func Measure(t *container.Tensor) error {
	info, ok := quant.Lookup(t.Type)
	if !ok {
		return fmt.Errorf("its type, %d, is not known", uint32(t.Type))
	}
	t.DType = info.Name
	n, ok := container.Product(t.Shape)
	if !ok {
		return fmt.Errorf("the product of its dimensions %v is too large", t.Shape)
	}
	row := 1
	if len(t.Shape) > 0 {
		row = t.Shape[len(t.Shape)-1]
	}
	if row%info.Values != 0 {
		return fmt.Errorf("rows of %d values are not whole blocks of %d, as %s needs", row, info.Values, info.Name)
	}
	hi, lo := bits.Mul64(uint64(n)/uint64(info.Values), uint64(info.Bytes))
	if hi != 0 || lo > math.MaxInt64 {
		return fmt.Errorf("%d values of %s are too large", n, info.Name)
	}
	t.Bytes = int64(lo)
	return nil
}

// place makes offsets absolute and checks that tensors lie in the file, aligned and apart.
func (r *reader) place(h *container.Header) error {
	at := r.Offset()
	h.DataStart = at + (h.Alignment-at%h.Alignment)%h.Alignment
	for i := range h.Tensors {
		t := &h.Tensors[i]
		if t.Offset%h.Alignment != 0 {
			return r.fail(tensorName(t.Name), "its offset, %d, is no multiple of the alignment, %d", t.Offset, h.Alignment)
		}
		if t.Bytes == 0 && t.Offset <= r.size {
			t.Offset = min(h.DataStart+t.Offset, r.size)
			continue
		}
		if room := r.size - h.DataStart; t.Offset > room || t.Bytes > room-t.Offset {
			return r.fail(tensorName(t.Name), "its %d bytes at offset %d of the data pass the end of the file, whose data has %d bytes",
				t.Bytes, t.Offset, max(room, 0))
		}
		t.Offset += h.DataStart
	}
	order := container.ByOffset(h.Tensors)
	for i := 1; i < len(order); i++ {
		a, b := &h.Tensors[order[i-1]], &h.Tensors[order[i]]
		if a.Offset+a.Bytes > b.Offset {
			return r.fail(tensorName(b.Name), "it overlaps tensor %s", container.Name(a.Name))
		}
	}
	return nil
}
