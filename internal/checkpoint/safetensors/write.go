package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spillway/spillway/internal/checkpoint/container"
)

// Writer writes a safetensors file from front to back: SetMeta and Add describe it, Begin writes the
// header, Write the data of all tensors in the order of Add, Close checks that all is there.
type Writer struct {
	*container.Payload
	meta map[string]string
	head []byte // members of the header, each followed by a comma
	seen map[string]bool
	end  int64
}

// NewWriter writes to w.
func NewWriter(w io.Writer) *Writer {
	out := &Writer{meta: map[string]string{}, seen: map[string]bool{"__metadata__": true}}
	out.Payload = container.NewPayload(w, "safetensors", out.header)
	return out
}

// SetMeta sets a key of the file's metadata.
func (w *Writer) SetMeta(key, value string) { w.meta[key] = value }

// Add announces a tensor of a dtype such as "F32", outermost dimension first.
func (w *Writer) Add(name, dtype string, shape ...int) error {
	d, ok := dtypes[dtype]
	n, fits := container.Product(shape)
	bits := n * int64(d.bits)
	switch {
	case w.Begun():
		return errors.New("safetensors: Add after Begin")
	case w.seen[name]:
		return fmt.Errorf("safetensors: tensor %s is there already", container.Name(name))
	case !ok:
		return fmt.Errorf("safetensors: tensor %s: dtype %q is not known", container.Name(name), dtype)
	case !fits || n > 1<<56 || bits%8 != 0:
		return fmt.Errorf("safetensors: tensor %s: shape %v is not possible", container.Name(name), shape)
	}
	w.seen[name] = true
	if shape == nil {
		shape = []int{}
	}
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}{dtype, shape, [2]int64{w.end, w.end + bits/8}})
	if err != nil {
		return err
	}
	w.head = append(append(append(append(w.head, key...), ':'), info...), ',')
	w.Announce(name, bits/8)
	w.end += bits / 8
	return nil
}

// header encodes all that comes before the data.
func (w *Writer) header() (parts [][]byte, align int64, err error) {
	head := []byte{'{'}
	if len(w.meta) > 0 {
		meta, err := json.Marshal(w.meta)
		if err != nil {
			return nil, 0, err
		}
		head = append(append(append(head, `"__metadata__":`...), meta...), ',')
	}
	head = append(head, w.head...)
	if n := len(head) - 1; head[n] == ',' {
		head = head[:n]
	}
	head = append(head, '}')
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	if len(head) > maxHeader {
		return nil, 0, fmt.Errorf("a header of %d bytes; the format allows %d", len(head), maxHeader)
	}
	w.head, w.seen = nil, nil
	return [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head}, 1, nil
}
