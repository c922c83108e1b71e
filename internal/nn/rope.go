package nn

import (
	"fmt"
	"math"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
)

// Rope describes rotary position embeddings (Su et al. 2021) and the scalings of their frequencies.
// Layers that rotate alike share one *Rope.
type Rope struct {
	Dim         int // rotated values of each head; a multiple of 2
	Base        float64
	Interleaved bool // pairs (2i, 2i+1) instead of (i, i+Dim/2)
	Scaling     Scaling
	// Sections gives the frequencies that follow each of a segment's three position streams, in
	// order (Qwen2-VL's mrope); zero for one stream.
	Sections [3]int
	// Factors is the role of an optional vector of Dim/2 divisors outside the layers.
	Factors string

	factors *layout.Vector
}

// Scaling changes rotary frequencies so that a model reaches beyond the length it was trained on.
// A nil Scaling leaves them alone.
type Scaling interface {
	// Frequencies returns the Dim/2 inverse frequencies and the factor on sine and cosine.
	Frequencies(dim int, base float64, length int) (inv []float32, factor float32)
	// Length maps a sequence's length to a value that is equal for lengths with equal frequencies.
	Length(n int) int
}

// frequencies returns the inverse frequencies of r for a sequence of the given length.
func (r *Rope) frequencies(length int, vector func(*layout.Vector) []float32) ([]float32, float32) {
	inv, factor := kernel.InvFreq(r.Dim, r.Base), float32(1)
	if r.Scaling != nil {
		inv, factor = r.Scaling.Frequencies(r.Dim, r.Base, length)
	}
	if r.factors != nil {
		kernel.RopeDivide(inv, vector(r.factors))
	}
	return inv, factor
}

func (m *Model) bindRopes(b *binder) error {
	seen := map[*Rope]bool{}
	for _, blk := range m.blocks {
		r := blk.mixer.desc.Rope
		if r == nil || seen[r] {
			continue
		}
		seen[r] = true
		m.ropes = append(m.ropes, r)
		if r.Dim <= 0 || r.Dim%2 != 0 || r.Dim > blk.mixer.desc.HeadDim {
			return fmt.Errorf("rotary dimension %d does not fit a head of %d", r.Dim, blk.mixer.desc.HeadDim)
		}
		if r.Factors == "" {
			continue
		}
		v, err := b.optional(r.Factors, r.Dim/2)
		if err != nil {
			return err
		}
		r.factors = v
	}
	return nil
}

// RopeLength maps a sequence's length to a value that is equal for all lengths that rotate alike. A
// cache may be continued only by requests with an equal value.
func (m *Model) RopeLength(n int) int {
	for _, r := range m.ropes {
		if r.Scaling != nil {
			if l := r.Scaling.Length(n); l != 0 {
				return l
			}
		}
	}
	return 0
}

// ropeTable is the cosines and sines of every row of a batch, rows × Dim/2 each, and the frequencies of the last
// segment, which most of the next ones share.
type ropeTable struct {
	cos, sin []float32
	inv      []float32 // nil: of none yet
	factor   float32
	length   int // by Scaling.Length
}

// tune makes the frequencies those of a sequence of the given length.
func (t *ropeTable) tune(r *Rope, length int, vector func(*layout.Vector) []float32) {
	key := 0
	if r.Scaling != nil {
		key = r.Scaling.Length(length)
	}
	if t.inv == nil || t.length != key {
		t.inv, t.factor = r.frequencies(length, vector)
		t.length = key
	}
}

func (r *Rope) tableFloats(rows int) int { return rows * r.Dim }

// fill computes the table for all rows of the batch.
func (t *ropeTable) fill(r *Rope, b *Batch, vector func(*layout.Vector) []float32) {
	row, half := 0, r.Dim/2
	for _, s := range b.Segments {
		t.tune(r, s.RopeLength, vector)
		for i := range s.Rows() {
			pos := [3]int32{int32(s.First + i)}
			pos[1], pos[2] = pos[0], pos[0]
			if s.Positions != nil {
				pos = s.Positions[i]
			}
			r.angles(t.cos[row*half:][:half], t.sin[row*half:][:half], pos, t.inv, t.factor)
			row++
		}
	}
}

func (r *Rope) angles(cos, sin []float32, pos [3]int32, inv []float32, factor float32) {
	if r.Sections == [3]int{} {
		kernel.RopeAngles(cos, sin, int(pos[0]), inv, factor)
		return
	}
	at := 0
	for stream, n := range r.Sections {
		end := min(at+n, len(inv))
		kernel.RopeAngles(cos[at:end], sin[at:end], int(pos[stream]), inv[at:end], factor)
		at = end
	}
}

// rotate turns the heads of one row in place.
func (t *ropeTable) rotate(r *Rope, row int, x []float32, heads, headDim int) {
	half := r.Dim / 2
	cos, sin := t.cos[row*half:][:half], t.sin[row*half:][:half]
	for h := range heads {
		kernel.Rope(x[h*headDim:][:headDim], cos, sin, r.Interleaved)
	}
}

// invSqrt is 1/√n rounded to f32, the usual scale of attention scores.
func invSqrt(n int) float32 { return float32(1 / math.Sqrt(float64(n))) }
