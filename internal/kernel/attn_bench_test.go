package kernel

import (
	"bytes"
	"fmt"
	"testing"
)

// benchSegment is one sequence whose last rows are computed, with a cache of small numbers.
func benchSegment(typ CacheType, s AttentionShape, length, rows int) Segment {
	seg := Segment{Rows: rows, First: length - rows, QStride: s.Heads * s.KDim, OutStride: s.Heads * s.VDim}
	seg.Q, seg.Out = make([]float32, rows*seg.QStride), make([]float32, rows*seg.OutStride)
	for i := range seg.Q {
		seg.Q[i] = float32(i%17-8) / 16
	}
	kv := KVBlocks{Type: typ, Tokens: 16, KVHeads: s.KVHeads, KDim: s.KDim, VDim: s.VDim}
	fill := func(dim int) []byte {
		var b []byte
		x := make([]float32, dim)
		for i := range 16 * s.KVHeads {
			for k := range x {
				x[k] = float32((i*7+k*3)%33-16) / 8
			}
			b = appendCache(b, typ, x)
		}
		return b
	}
	k, v := fill(s.KDim), fill(s.VDim)
	for at := 0; at < length; at += 16 {
		kv.K, kv.V = append(kv.K, bytes.Clone(k)), append(kv.V, bytes.Clone(v))
	}
	seg.KV = kv
	return seg
}

func benchAttention(b *testing.B, s AttentionShape, seg Segment) {
	p := NewPool(1) // one thread, whatever else the machine does
	defer p.Close()
	scratch := make([]byte, AttentionScratch(s, 1, seg.First+seg.Rows)+1<<20)
	a, segs := Attention{Heads: s.Heads, Scale: 0.125}, []Segment{seg}
	keys := 0
	for r := range seg.Rows {
		keys += seg.First + r + 1
	}
	b.SetBytes(int64(len(seg.KV.K)) * int64(len(seg.KV.K[0])+len(seg.KV.V[0])))
	for b.Loop() {
		a.Run(p, scratch, segs)
	}
	flop := float64(keys) * float64(2*s.Heads*(s.KDim+s.VDim))
	b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkAttentionPrefill(b *testing.B) {
	for _, s := range []AttentionShape{{32, 4, 64, 64}, {32, 8, 128, 128}, {9, 3, 64, 64}, {16, 16, 64, 64}} {
		b.Run(fmt.Sprint(s), func(b *testing.B) { benchAttention(b, s, benchSegment(CacheF16, s, 512, 512)) })
	}
	s := AttentionShape{32, 4, 64, 64}
	b.Run("depth 8192", func(b *testing.B) { benchAttention(b, s, benchSegment(CacheF16, s, 8192+64, 64)) })
}

func BenchmarkAttentionDecode(b *testing.B) {
	for _, s := range []AttentionShape{{32, 4, 64, 64}, {32, 8, 128, 128}, {32, 32, 128, 128}, {9, 3, 64, 64}} {
		for typ := range cacheTypes {
			b.Run(fmt.Sprintf("%v/%v", s, typ), func(b *testing.B) { benchAttention(b, s, benchSegment(typ, s, 16384, 1)) })
		}
	}
}

func BenchmarkWiden(b *testing.B) {
	for typ := range cacheTypes {
		b.Run(typ.String(), func(b *testing.B) {
			src, dst := make([]byte, typ.RowBytes(16*128)), make([]float32, 16*128)
			b.SetBytes(int64(4 * len(dst)))
			for b.Loop() {
				active.vector.widen(typ, dst, src, 16, 128, typ.RowBytes(128))
			}
		})
	}
}

func BenchmarkStore(b *testing.B) {
	for typ := range cacheTypes {
		b.Run(typ.String(), func(b *testing.B) {
			src, dst := make([]float32, 1024), make([]byte, typ.RowBytes(1024))
			for i := range src {
				src[i] = float32(i%33-16) / 8
			}
			b.SetBytes(int64(4 * len(src)))
			for b.Loop() {
				typ.Store(dst, src)
			}
		})
	}
}
