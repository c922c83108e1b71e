package repack

import (
	"testing"

	"github.com/spillway/spillway/internal/mem"
)

// BenchmarkRead reads 4 MiB of rows at a time from files in memory: what repacking costs. Bytes are
// those of the rows.
func BenchmarkRead(b *testing.B) {
	const rows, cols = 4096, 4096
	s := newShelf()
	f := s.file()
	order := s.tensor("g_idx", "I32", 4, cols)
	for k := range cols {
		s.bytes(order)[4*k], s.bytes(order)[4*k+1] = byte(k%32), 0
		s.bytes(order)[4*k+2], s.bytes(order)[4*k+3] = 0, 0
	}
	x := Ints{Codes: s.tensor("q", "I32", 4, cols/8, rows), Scales: s.tensor("s", "F16", 2, cols/128, rows), Zeros: s.tensor("z", "I32", 4, cols/128, rows/8), Bits: 4, Group: 128}
	ordered := x
	ordered.Order, ordered.Ordered = order, true
	kinds := []struct {
		name string
		add  func() (Matrix, error)
	}{
		{"gptq", func() (Matrix, error) { return f.AddGPTQ(x, rows, cols) }},
		{"gptq-order", func() (Matrix, error) { return f.AddGPTQ(ordered, rows, cols) }},
		{"awq", func() (Matrix, error) {
			x.Codes = s.tensor("q", "I32", 4, cols, rows/8)
			return f.AddAWQ(x, rows, cols)
		}},
		{"packed", func() (Matrix, error) {
			p := Ints{Codes: s.tensor("q", "I32", 4, rows, cols/8), Scales: s.tensor("s", "BF16", 2, rows, cols/128), Bits: 4, Group: 128}
			return f.AddPacked(p, rows, cols)
		}},
		{"fp8", func() (Matrix, error) {
			return f.AddFP8(FP8{Codes: s.tensor("q", "F8_E4M3", 1, rows, cols), Scale: s.tensor("s", "F32", 4, rows/128, cols/128), Block: [2]int{128, 128}}, rows, cols)
		}},
		{"nf4", func() (Matrix, error) {
			return f.AddNF4(NF4{Codes: s.tensor("q", "U8", 1, rows*cols/2, 1), AbsMax: s.tensor("a", "F32", 4, rows*cols/64), Block: 64}, rows, cols)
		}},
		{"nvfp4", func() (Matrix, error) {
			return f.AddNVFP4(NVFP4{Codes: s.tensor("q", "U8", 1, rows, cols/2), Scale: s.tensor("s", "F8_E4M3", 1, rows, cols/16), Tensor: s.tensor("t", "F32", 4, 1)}, rows, cols)
		}},
	}
	at := make([]Matrix, len(kinds))
	for i, k := range kinds {
		var err error
		if at[i], err = k.add(); err != nil {
			b.Fatal(err)
		}
	}
	s.close()
	scratch := mem.AlignUp(make([]byte, f.ScratchBytes()+1<<20+4096), 4096)
	buf := make([]byte, 4<<20)
	for i, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for range b.N {
				if _, err := f.ReadWith(buf, at[i].Offset, scratch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
