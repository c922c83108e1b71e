// Package safetensors reads and writes safetensors files
// (github.com/huggingface/safetensors, "Format").
package safetensors

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

const (
	// maxHeader is the format's limit for the header, in bytes.
	maxHeader  = 100_000_000
	maxTensors = 1 << 20
	maxDims    = 16
	// maxMeta bounds the strings of __metadata__ that are kept.
	maxMeta     = 8 << 20
	maxMetaKeys = 1024
)

// dtype is an element type: its bits, and quant's name for it.
type dtype struct {
	bits int
	typ  quant.Type
}

var dtypes = map[string]dtype{
	"F64": {64, quant.F64}, "F32": {32, quant.F32}, "F16": {16, quant.F16}, "BF16": {16, quant.BF16},
	"I64": {64, quant.I64}, "I32": {32, quant.I32}, "I16": {16, quant.I16}, "I8": {8, quant.I8},
	"U64": {64, container.NoType}, "U32": {32, container.NoType}, "U16": {16, container.NoType},
	"U8": {8, container.NoType}, "BOOL": {8, container.NoType}, "C64": {64, container.NoType},
	"F8_E4M3": {8, container.NoType}, "F8_E5M2": {8, container.NoType}, "F8_E8M0": {8, container.NoType},
	"F8_E4M3FNUZ": {8, container.NoType}, "F8_E5M2FNUZ": {8, container.NoType},
	"F6_E2M3": {6, container.NoType}, "F6_E3M2": {6, container.NoType}, "F4": {4, container.NoType},
}

// reader is one pass over a header.
type reader struct {
	json *container.JSON
	path string
	data int64 // offset of the data
	size int64 // of the file

	tensors []container.Tensor
	meta    []container.Entry
	kept    int
}

func (r *reader) fail(where, format string, args ...any) error {
	return &container.Error{Path: r.path, Where: where, What: fmt.Sprintf(format, args...)}
}

// Read reads and validates a header. It reads no tensor data. A file that is damaged or not
// supported gives a *container.Error.
func Read(f vfs.File) (*container.Header, error) {
	r := &reader{path: f.Name(), size: f.Size()}
	n, err := r.length(f)
	if err != nil {
		return nil, err
	}
	r.data = 8 + n
	r.json = container.NewJSON(container.NewReader(f, 8, r.data))
	if err = r.json.Object(r.member); err == nil {
		err = r.json.End()
	}
	if err != nil {
		return nil, r.wrap("header", err)
	}
	table, duplicate, ok := container.NewTable(f, r.meta)
	if !ok {
		return nil, r.fail("__metadata__", "key %s is there twice", container.Name(duplicate))
	}
	if err := r.cover(); err != nil {
		return nil, err
	}
	return &container.Header{Alignment: 1, DataStart: r.data, Meta: table, Tensors: r.tensors}, nil
}

// wrap makes an error of what reading returned: faults of the drive stay what they are.
func (r *reader) wrap(where string, err error) error {
	var ours *container.Error
	var drive *container.ReadError
	switch {
	case errors.As(err, &ours):
		return err
	case errors.As(err, &drive):
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return r.fail(where, "%v", err)
}

// length reads the size of the header.
func (r *reader) length(f vfs.File) (int64, error) {
	if r.size < 8 {
		return 0, r.fail("", "not a safetensors file: it has only %d bytes", r.size)
	}
	n, err := container.NewReader(f, 0, 8).Uint64()
	switch {
	case err != nil:
		return 0, r.wrap("header", err)
	case n > uint64(r.size-8):
		return 0, r.fail("header", "its %d bytes pass the end of the file, which has %d bytes", n, r.size)
	case n > maxHeader:
		return 0, r.fail("header", "its %d bytes are more than the format's limit, %d", n, maxHeader)
	case n < 2:
		return 0, r.fail("header", "it is empty")
	}
	return int64(n), nil
}

// member reads one member of the header: a tensor or the metadata.
func (r *reader) member(key string) error {
	if key == "__metadata__" {
		return r.metadata()
	}
	if len(r.tensors) == maxTensors {
		return r.fail("header", "more than %d tensors", maxTensors)
	}
	t, err := r.tensor(key)
	if err != nil {
		return r.wrap(tensorName(key), err)
	}
	r.tensors = append(r.tensors, t)
	return nil
}

func (r *reader) metadata() error {
	return r.json.Object(func(key string) error {
		text, err := r.json.String()
		if err != nil {
			return err
		}
		if r.kept += len(key) + len(text); r.kept > maxMeta || len(r.meta) == maxMetaKeys {
			return r.fail("__metadata__", "more than %d keys or %d bytes", maxMetaKeys, maxMeta)
		}
		r.meta = append(r.meta, container.Entry{Key: key, Value: container.TextValue(text)})
		return nil
	})
}

func tensorName(name string) string { return "tensor " + container.Name(name) }

// members of a tensor's description, all required.
var members = [...]string{"dtype", "shape", "data_offsets"}

// tensor reads and checks one tensor's description.
func (r *reader) tensor(name string) (container.Tensor, error) {
	t := container.Tensor{Name: name}
	var offsets []uint64
	var seen [len(members)]bool
	err := r.json.Object(func(key string) (err error) {
		i := slices.Index(members[:], key)
		if i < 0 {
			return r.json.Skip()
		}
		if seen[i] {
			return r.fail(tensorName(name), "%s is there twice", key)
		}
		seen[i] = true
		switch key {
		case "dtype":
			t.DType, err = r.json.String()
		case "shape":
			t.Shape, err = r.shape(name)
		default:
			offsets, err = r.numbers(2)
		}
		return err
	})
	if err != nil {
		return t, err
	}
	if i := slices.Index(seen[:], false); i >= 0 {
		return t, r.fail(tensorName(name), "%s is missing", members[i])
	}
	return t, r.measure(&t, offsets)
}

// numbers reads an array of at most n natural numbers.
func (r *reader) numbers(n int) ([]uint64, error) {
	var out []uint64
	err := r.json.Array(func() error {
		v, err := r.json.Uint()
		if err != nil {
			return err
		}
		if out = append(out, v); len(out) > n {
			return fmt.Errorf("a list has more than %d numbers", n)
		}
		return nil
	})
	return out, err
}

func (r *reader) shape(name string) ([]int, error) {
	dims, err := r.numbers(maxDims)
	if err != nil {
		return nil, err
	}
	shape := make([]int, len(dims))
	for i, d := range dims {
		if d > math.MaxInt {
			return nil, r.fail(tensorName(name), "dimension %d is %d, which is too large", i, d)
		}
		shape[i] = int(d)
	}
	return shape, nil
}

// measure checks dtype, shape and offsets against each other and against the file.
func (r *reader) measure(t *container.Tensor, offsets []uint64) error {
	where := tensorName(t.Name)
	d, ok := dtypes[t.DType]
	if !ok {
		return r.fail(where, "its dtype, %s, is not known", container.Name(t.DType))
	}
	t.Type = d.typ
	n, ok := container.Product(t.Shape)
	if !ok {
		return r.fail(where, "the product of its dimensions %v is too large", t.Shape)
	}
	hi, lo := bits.Mul64(uint64(n), uint64(d.bits))
	if hi != 0 || lo%8 != 0 {
		return r.fail(where, "%d values of %s are no whole number of bytes, or too many", n, t.DType)
	}
	if len(offsets) != 2 || offsets[0] > offsets[1] {
		return r.fail(where, "data_offsets %d are not begin and end", offsets)
	}
	begin, end := offsets[0], offsets[1]
	if end > uint64(r.size-r.data) {
		return r.fail(where, "its data, %d to %d, passes the end of the file, whose data has %d bytes", begin, end, r.size-r.data)
	}
	if end-begin != lo/8 {
		return r.fail(where, "%s of shape %v takes %d bytes, but data_offsets give it %d", t.DType, t.Shape, lo/8, end-begin)
	}
	t.Offset, t.Bytes = r.data+int64(begin), int64(end-begin)
	return nil
}

// cover checks that names are unique and that the tensors cover the data without hole or overlap,
// as the format demands.
func (r *reader) cover() error {
	name := func(i int) string { return r.tensors[i].Name }
	if i := container.Duplicate(container.ByName(len(r.tensors), name), name); i >= 0 {
		return r.fail(tensorName(name(i)), "it is there twice")
	}
	at, last := r.data, ""
	for _, i := range container.ByOffset(r.tensors) {
		t := &r.tensors[i]
		switch {
		case t.Offset < at:
			return r.fail(tensorName(t.Name), "it overlaps tensor %s", container.Name(last))
		case t.Offset > at:
			return r.fail(tensorName(t.Name), "%d bytes before it belong to no tensor", t.Offset-at)
		}
		at, last = t.Offset+t.Bytes, t.Name
	}
	if at != r.size {
		return r.fail("", "the last %d bytes belong to no tensor", r.size-at)
	}
	return nil
}
