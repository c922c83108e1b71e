package kernel

import (
	"fmt"
	"testing"

	"github.com/spillway/spillway/internal/quant"
)

// benchSegment is one sequence whose last rows are computed, with a cache of small numbers.
func benchSegment(s AttentionShape, length, rows int) Segment {
	seg := Segment{Rows: rows, First: length - rows, QStride: s.Heads * s.KDim, OutStride: s.Heads * s.VDim}
	seg.Q, seg.Out = make([]float32, rows*seg.QStride), make([]float32, rows*seg.OutStride)
	for i := range seg.Q {
		seg.Q[i] = float32(i%17-8) / 16
	}
	kv := KVBlocks{Type: quant.F16, Tokens: 16, KVHeads: s.KVHeads, KDim: s.KDim, VDim: s.VDim}
	fill := func(n int) []byte {
		b := make([]byte, n)
		for i := 0; i < n; i += 2 {
			b[i], b[i+1] = byte(i*7), 0x34+byte(i>>3&3)
		}
		return b
	}
	for at := 0; at < length; at += 16 {
		kv.K = append(kv.K, fill(16*2*s.KVHeads*s.KDim))
		kv.V = append(kv.V, fill(16*2*s.KVHeads*s.VDim))
	}
	seg.KV = kv
	return seg
}

func benchAttention(b *testing.B, s AttentionShape, segs []Segment) {
	p := NewPool(2)
	defer p.Close()
	length := segs[0].First + segs[0].Rows
	scratch := make([]byte, AttentionScratch(s, 2, length)+1<<20)
	a := Attention{Heads: s.Heads, Scale: 0.125}
	var keys, bytes int
	for _, seg := range segs {
		for r := range seg.Rows {
			keys += seg.First + r + 1
		}
		bytes += len(seg.KV.K) * (len(seg.KV.K[0]) + len(seg.KV.V[0]))
	}
	for b.Loop() {
		a.Run(p, scratch, segs)
	}
	flop := float64(keys) * float64(2*s.Heads*(s.KDim+s.VDim))
	b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	b.ReportMetric(float64(bytes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}

func BenchmarkAttentionPrefill(b *testing.B) {
	for _, s := range []AttentionShape{{32, 4, 64, 64}, {32, 8, 128, 128}, {9, 3, 64, 64}, {16, 16, 64, 64}} {
		b.Run(fmt.Sprint(s), func(b *testing.B) { benchAttention(b, s, []Segment{benchSegment(s, 512, 512)}) })
	}
}

func BenchmarkAttentionDecode(b *testing.B) {
	for _, s := range []AttentionShape{{32, 4, 64, 64}, {32, 8, 128, 128}, {32, 32, 128, 128}, {9, 3, 64, 64}} {
		b.Run(fmt.Sprint(s), func(b *testing.B) { benchAttention(b, s, []Segment{benchSegment(s, 16384, 1)}) })
	}
}
