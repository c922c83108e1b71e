package pager

import (
	"context"
	"fmt"

	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
)

// Vector is the values of v, decoded to f32 when the pager was opened.
func (p *Pager) Vector(v *layout.Vector) []float32 { return p.vectors[v.ID] }

// vectorsOf divides memory among the vectors.
func vectorsOf(m *layout.Model, memory []byte) [][]float32 {
	values := mem.AsFloat32s(memory[:m.VectorBytes()])
	vectors := make([][]float32, len(m.Vectors))
	for i, v := range m.Vectors {
		vectors[i], values = values[:v.Len:v.Len], values[v.Len:]
	}
	return vectors
}

// readVectors decodes all vectors into leased memory.
func (p *Pager) readVectors(ctx context.Context) error {
	for i, v := range p.model.Vectors {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.readVector(v, p.vectors[i]); err != nil {
			return fmt.Errorf("%s: vector %s: %w", p.files[v.File].Name(), v.Name, err)
		}
	}
	return nil
}

// readVector reads in pieces that fit a look-up buffer.
func (p *Pager) readVector(v *layout.Vector, dst []float32) error {
	own := p.place.Readers
	block := v.Type.BlockValues()
	step := (int(p.place.LookupBytes) - 2*p.place.Align) / v.Type.BlockBytes() * block
	if step < block {
		return fmt.Errorf("a block of %v does not fit a buffer of %d bytes", v.Type, p.place.LookupBytes)
	}
	for from := 0; from < v.Len; from += step {
		n := min(step, v.Len-from)
		offset := v.Offset + int64(v.Type.RowBytes(from))
		raw, err := p.readSmall(v.File, offset, v.Type.RowBytes(n), own)
		if err != nil {
			raw, err = p.readSmall(v.File, offset, v.Type.RowBytes(n), own)
		}
		if err != nil {
			return err
		}
		if err := quant.DecodeRow(v.Type, dst[from:from+n], raw); err != nil {
			return err
		}
	}
	return nil
}
