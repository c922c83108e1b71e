package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/quant"
)

// Writer writes a GGUF file, version 3, from front to back: Set and Add describe it, Begin writes
// the header, Write the data of all tensors in the order of Add, Close checks that all is there.
type Writer struct {
	*container.Payload
	keys  []byte // encoded
	count uint64

	seen  map[string]bool
	align int64
	infos []byte
	end   int64 // of the data so far
}

// NewWriter writes to w.
func NewWriter(w io.Writer) *Writer {
	out := &Writer{seen: map[string]bool{}, align: DefaultAlignment}
	out.Payload = container.NewPayload(w, "gguf", out.header)
	return out
}

var order = binary.LittleEndian

func appendText(b []byte, s string) []byte {
	return append(order.AppendUint64(b, uint64(len(s))), s...)
}

// Set adds a key. The value is a fixed-size integer, float, bool, string, or a slice of one of
// them; general.alignment, a uint32, is obeyed.
func (w *Writer) Set(key string, value any) error {
	switch {
	case w.Begun():
		return errors.New("gguf: Set after Begin")
	case len(key) > maxKey || w.seen["key "+key]:
		return fmt.Errorf("gguf: key %s is too long, or there already", container.Name(key))
	}
	if key == "general.alignment" {
		a, ok := value.(uint32)
		if !ok || bits.OnesCount32(a) != 1 || w.Announced() > 0 {
			return fmt.Errorf("gguf: general.alignment is %v; a uint32 that is a power of two, before the first tensor, is needed", value)
		}
		w.align = int64(a)
	}
	kind, body, err := encodeValue(value)
	if err != nil {
		return fmt.Errorf("gguf: key %s: %w", container.Name(key), err)
	}
	w.seen["key "+key] = true
	w.keys = append(order.AppendUint32(appendText(w.keys, key), uint32(kind)), body...)
	w.count++
	return nil
}

// encodeValue returns kind and bytes of a value.
func encodeValue(value any) (container.Kind, []byte, error) {
	switch v := value.(type) {
	case string:
		return container.String, appendText(nil, v), nil
	case []string:
		b := listHead(container.String, len(v))
		for _, s := range v {
			b = appendText(b, s)
		}
		return container.List, b, nil
	case []byte:
		return container.List, append(listHead(container.Uint8, len(v)), v...), nil
	}
	if kind, ok := scalarKind(value); ok {
		b, err := binary.Append(nil, order, value)
		return kind, b, err
	}
	if kind, n, ok := listKind(value); ok {
		b, err := binary.Append(listHead(kind, n), order, value)
		return container.List, b, err
	}
	return 0, nil, fmt.Errorf("%T is no type of the format", value)
}

func listHead(elem container.Kind, n int) []byte {
	return order.AppendUint64(order.AppendUint32(nil, uint32(elem)), uint64(n))
}

func scalarKind(value any) (container.Kind, bool) {
	switch value.(type) {
	case uint8:
		return container.Uint8, true
	case int8:
		return container.Int8, true
	case uint16:
		return container.Uint16, true
	case int16:
		return container.Int16, true
	case uint32:
		return container.Uint32, true
	case int32:
		return container.Int32, true
	case uint64:
		return container.Uint64, true
	case int64:
		return container.Int64, true
	case float32:
		return container.Float32, true
	case float64:
		return container.Float64, true
	case bool:
		return container.Bool, true
	}
	return 0, false
}

func listKind(value any) (kind container.Kind, n int, ok bool) {
	switch v := value.(type) {
	case []int8:
		return container.Int8, len(v), true
	case []uint16:
		return container.Uint16, len(v), true
	case []int16:
		return container.Int16, len(v), true
	case []uint32:
		return container.Uint32, len(v), true
	case []int32:
		return container.Int32, len(v), true
	case []uint64:
		return container.Uint64, len(v), true
	case []int64:
		return container.Int64, len(v), true
	case []float32:
		return container.Float32, len(v), true
	case []float64:
		return container.Float64, len(v), true
	case []bool:
		return container.Bool, len(v), true
	}
	return 0, 0, false
}

// Add announces a tensor; shape is outermost first. Its data comes after that of those before it.
func (w *Writer) Add(name string, t quant.Type, shape ...int) error {
	info, ok := quant.Lookup(t)
	n, fits := container.Product(shape)
	switch {
	case w.Begun():
		return errors.New("gguf: Add after Begin")
	case len(name) > maxName || w.seen["tensor "+name]:
		return fmt.Errorf("gguf: tensor name %s is too long, or there already", container.Name(name))
	case !ok:
		return fmt.Errorf("gguf: tensor %s: %v is not known", container.Name(name), t)
	case !fits || len(shape) == 0 || len(shape) > maxDims || n > math.MaxInt64/int64(info.Bytes):
		return fmt.Errorf("gguf: tensor %s: shape %v is not possible", container.Name(name), shape)
	case shape[len(shape)-1]%info.Values != 0:
		return fmt.Errorf("gguf: tensor %s: rows of %d values are not whole blocks of %d", container.Name(name), shape[len(shape)-1], info.Values)
	}
	w.seen["tensor "+name] = true
	size := n / int64(info.Values) * int64(info.Bytes)
	b := order.AppendUint32(appendText(w.infos, name), uint32(len(shape)))
	for i := range shape {
		b = order.AppendUint64(b, uint64(shape[len(shape)-1-i]))
	}
	w.infos = order.AppendUint64(order.AppendUint32(b, uint32(t)), uint64(w.end))
	w.Announce(name, size)
	w.end += size + container.Padding(size, w.align)
	return nil
}

// header encodes all that comes before the data.
func (w *Writer) header() (parts [][]byte, align int64, err error) {
	head := order.AppendUint32([]byte(magic), 3)
	head = order.AppendUint64(order.AppendUint64(head, uint64(w.Announced())), w.count)
	size := int64(len(head) + len(w.keys) + len(w.infos))
	parts = [][]byte{head, w.keys, w.infos, make([]byte, container.Padding(size, w.align))}
	w.keys, w.infos, w.seen = nil, nil, nil
	return parts, w.align, nil
}
