package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// Array is a tensor in memory: for small files such as a probe's.
type Array struct {
	Name  string
	DType string // as the format spells it: "F32", "I64"
	Shape []int  // outermost first
	Data  []byte // little-endian
}

// Float32s makes an array of dtype F32.
func Float32s(name string, shape []int, values []float32) Array {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return Array{name, "F32", shape, data}
}

// Int64s makes an array of dtype I64.
func Int64s(name string, shape []int, values []int64) Array {
	data := make([]byte, 0, 8*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return Array{name, "I64", shape, data}
}

// Float32s returns the values of a float array.
func (a Array) Float32s() ([]float32, error) {
	d, ok := dtypes[a.DType]
	if !ok || !d.typ.IsFloat() {
		return nil, fmt.Errorf("%s: dtype %s has no float32 values", a.Name, a.DType)
	}
	out := make([]float32, len(a.Data)/(d.bits/8))
	return out, quant.DecodeRow(d.typ, out, a.Data)
}

// Ints returns the values of an integer array of 32 or 64 bits.
func (a Array) Ints() ([]int64, error) {
	var out []int64
	switch a.DType {
	case "I64":
		for b := a.Data; len(b) >= 8; b = b[8:] {
			out = append(out, int64(binary.LittleEndian.Uint64(b)))
		}
	case "I32":
		for b := a.Data; len(b) >= 4; b = b[4:] {
			out = append(out, int64(int32(binary.LittleEndian.Uint32(b))))
		}
	default:
		return nil, fmt.Errorf("%s: dtype %s is not I32 or I64", a.Name, a.DType)
	}
	return out, nil
}

// Write writes a whole file.
func Write(w io.Writer, arrays []Array) error {
	out := NewWriter(w)
	for _, a := range arrays {
		if err := out.Add(a.Name, a.DType, a.Shape...); err != nil {
			return err
		}
	}
	if err := out.Begin(); err != nil {
		return err
	}
	for i, a := range arrays {
		if n := out.Size(i); int64(len(a.Data)) != n {
			return fmt.Errorf("safetensors: tensor %s has %d bytes of data; its shape needs %d", container.Name(a.Name), len(a.Data), n)
		}
		if _, err := out.Write(a.Data); err != nil {
			return err
		}
	}
	return out.Close()
}

// ReadAll reads a whole file of at most limit bytes, by name.
func ReadAll(f vfs.File, limit int64) (map[string]Array, error) {
	if f.Size() > limit {
		return nil, &container.Error{Path: f.Name(), What: fmt.Sprintf("it has %d bytes; at most %d are read at once", f.Size(), limit)}
	}
	h, err := Read(f)
	if err != nil {
		return nil, err
	}
	out := make(map[string]Array, len(h.Tensors))
	for _, t := range h.Tensors {
		data, err := container.NewReader(f, t.Offset, t.Offset+t.Bytes).Append(nil, int(t.Bytes))
		if err != nil {
			return nil, fmt.Errorf("%s: tensor %s: %w", f.Name(), container.Name(t.Name), err)
		}
		out[t.Name] = Array{t.Name, t.DType, t.Shape, data}
	}
	return out, nil
}
