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
	"github.com/spillway/spillway/internal/checkpoint/jsonscan"
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
	// maxText bounds a name, a key or a value of __metadata__.
	maxText = 64 << 10
	// firstAlloc bounds what is allocated for tensors that the header's size allows.
	firstAlloc = 4096
)

// dtype is an element type: its bits, and quant's name for it.
type dtype struct {
	bits int
	typ  quant.Type
	name string
}

// dtypes are those of the format; quant knows some of them.
var dtypes = byName(
	dtype{64, quant.F64, "F64"},
	dtype{32, quant.F32, "F32"},
	dtype{16, quant.F16, "F16"},
	dtype{16, quant.BF16, "BF16"},
	dtype{64, quant.I64, "I64"},
	dtype{32, quant.I32, "I32"},
	dtype{16, quant.I16, "I16"},
	dtype{8, quant.I8, "I8"},
	dtype{64, container.NoType, "U64"},
	dtype{32, container.NoType, "U32"},
	dtype{16, container.NoType, "U16"},
	dtype{8, container.NoType, "U8"},
	dtype{8, container.NoType, "BOOL"},
	dtype{64, container.NoType, "C64"},
	dtype{8, container.NoType, "F8_E4M3"},
	dtype{8, container.NoType, "F8_E5M2"},
	dtype{8, container.NoType, "F8_E8M0"},
	dtype{8, container.NoType, "F8_E4M3FNUZ"},
	dtype{8, container.NoType, "F8_E5M2FNUZ"},
	dtype{6, container.NoType, "F6_E2M3"},
	dtype{6, container.NoType, "F6_E3M2"},
	dtype{4, container.NoType, "F4"},
)

func byName(list ...dtype) map[string]dtype {
	m := make(map[string]dtype, len(list))
	for _, d := range list {
		m[d.name] = d
	}
	return m
}

// reader is one pass over a header.
type reader struct {
	json *jsonscan.Scanner
	path string
	data int64 // offset of the data
	size int64 // of the file

	tensors []container.Tensor
	numbers []uint64 // of the list that was read last
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
	// A tensor's description rarely takes less than 128 bytes.
	r.tensors = make([]container.Tensor, 0, min(n/128, firstAlloc))
	r.json = jsonscan.New(container.NewReader(f, 8, r.data), maxText)
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
		if ours.Path == "" { // of the scanner
			ours.Path, ours.Where = r.path, where
		}
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
func (r *reader) member(key []byte) error {
	if string(key) == "__metadata__" {
		return r.metadata()
	}
	if len(r.tensors) == maxTensors {
		return r.fail("header", "more than %d tensors", maxTensors)
	}
	t := container.Tensor{Name: string(key)}
	if err := r.tensor(&t); err != nil {
		return r.wrap(tensorName(t.Name), err)
	}
	r.tensors = append(r.tensors, t)
	return nil
}

func (r *reader) metadata() error {
	return r.json.Object(func(member []byte) error {
		key := string(member)
		text, err := r.json.Text()
		if err != nil {
			return err
		}
		if r.kept += len(key) + len(text); r.kept > maxMeta || len(r.meta) == maxMetaKeys {
			return r.fail("__metadata__", "more than %d keys or %d bytes", maxMetaKeys, maxMeta)
		}
		r.meta = append(r.meta, container.Entry{Key: key, Value: container.TextValue(string(text))})
		return nil
	})
}

func tensorName(name string) string { return "tensor " + container.Name(name) }

// members of a tensor's description, all required.
var members = [...]string{"dtype", "shape", "data_offsets"}

// tensor reads and checks one tensor's description.
func (r *reader) tensor(t *container.Tensor) error {
	var d dtype
	var offsets [2]uint64
	var seen [len(members)]bool
	err := r.json.Object(func(key []byte) (err error) {
		i := 0
		for i < len(members) && members[i] != string(key) {
			i++
		}
		if i == len(members) {
			return r.json.Skip()
		}
		if seen[i] {
			return fmt.Errorf("%s is there twice", members[i])
		}
		seen[i] = true
		switch i {
		case 0:
			d, err = r.dtype()
		case 1:
			t.Shape, err = r.shape()
		default:
			offsets, err = r.offsets()
		}
		return err
	})
	if err != nil {
		return err
	}
	if i := slices.Index(seen[:], false); i >= 0 {
		return fmt.Errorf("%s is missing", members[i])
	}
	t.Type, t.DType = d.typ, d.name
	return r.measure(t, d.bits, offsets[0], offsets[1])
}

func (r *reader) dtype() (dtype, error) {
	text, err := r.json.Text()
	if err != nil {
		return dtype{}, err
	}
	d, ok := dtypes[string(text)]
	if !ok {
		return d, fmt.Errorf("its dtype, %s, is not known", container.Name(string(text)))
	}
	return d, nil
}

// list reads an array of at most n natural numbers into r.numbers.
func (r *reader) list(n int) error {
	r.numbers = r.numbers[:0]
	return r.json.Array(func() error {
		v, err := r.json.Uint()
		if err != nil {
			return err
		}
		if r.numbers = append(r.numbers, v); len(r.numbers) > n {
			return fmt.Errorf("a list has more than %d numbers", n)
		}
		return nil
	})
}

func (r *reader) shape() ([]int, error) {
	if err := r.list(maxDims); err != nil {
		return nil, err
	}
	shape := make([]int, len(r.numbers))
	for i, d := range r.numbers {
		if d > math.MaxInt {
			return nil, fmt.Errorf("dimension %d is %d, which is too large", i, d)
		}
		shape[i] = int(d)
	}
	return shape, nil
}

func (r *reader) offsets() (o [2]uint64, err error) {
	if err := r.list(2); err != nil {
		return o, err
	}
	if len(r.numbers) != 2 || r.numbers[0] > r.numbers[1] {
		return o, fmt.Errorf("data_offsets %d are not begin and end", r.numbers)
	}
	return [2]uint64(r.numbers), nil
}

// Measure sets a tensor's Type and Bytes by its DType and Shape.
func Measure(t *container.Tensor) error {
	d, ok := dtypes[t.DType]
	if !ok {
		return fmt.Errorf("its dtype, %s, is not known", container.Name(t.DType))
	}
	n, err := size(t, d.bits)
	if err == nil && n > math.MaxInt64 {
		err = fmt.Errorf("its shape %v is too large", t.Shape)
	}
	t.Type, t.Bytes = d.typ, int64(n)
	return err
}

// size is the bytes of a tensor whose values have so many bits.
func size(t *container.Tensor, width int) (uint64, error) {
	n, ok := container.Product(t.Shape)
	if !ok {
		return 0, fmt.Errorf("the product of its dimensions %v is too large", t.Shape)
	}
	hi, lo := bits.Mul64(uint64(n), uint64(width))
	if hi != 0 || lo%8 != 0 {
		return 0, fmt.Errorf("%d values of %s are no whole number of bytes, or too many", n, t.DType)
	}
	return lo / 8, nil
}

// measure checks shape and offsets against each other and against the file.
func (r *reader) measure(t *container.Tensor, width int, begin, end uint64) error {
	n, err := size(t, width)
	if err != nil {
		return err
	}
	if end > uint64(r.size-r.data) {
		return fmt.Errorf("its data, %d to %d, passes the end of the file, whose data has %d bytes", begin, end, r.size-r.data)
	}
	if end-begin != n {
		return fmt.Errorf("%s of shape %v takes %d bytes, but data_offsets give it %d", t.DType, t.Shape, n, end-begin)
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
