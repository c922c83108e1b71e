package kernel

import (
	"encoding/binary"
	"math"

	"github.com/spillway/spillway/internal/quant"
)

// groupMatmul has the loops for the row formats of quant.
var groupMatmul = matmulOps{
	decode: map[quant.Type]decodeFunc{
		quant.E4M3x32:  decodeBlocks(quant.E4M3x32, decodeE4M3AVX2),
		quant.E4M3x128: decodeBlocks(quant.E4M3x128, decodeE4M3AVX2),
		quant.E5M2x32:  decodeBlocks(quant.E5M2x32, decodeE5M2AVX2),
		quant.E5M2x128: decodeBlocks(quant.E5M2x128, decodeE5M2AVX2),
		quant.NF4x32:   decodeBlocks(quant.NF4x32, decodeNF4AVX2),
		quant.NF4x64:   decodeBlocks(quant.NF4x64, decodeNF4AVX2),
		quant.FP4x32:   decodeBlocks(quant.FP4x32, decodeFP4AVX2),
		quant.FP4x64:   decodeBlocks(quant.FP4x64, decodeFP4AVX2),
	},
	floatRows: map[quant.Type]partFunc{
		quant.E4M3x32:  scaledRows(quant.E4M3x32, blockRowsE4M3AVX2),
		quant.E4M3x128: scaledRows(quant.E4M3x128, blockRowsE4M3AVX2),
		quant.E5M2x32:  scaledRows(quant.E5M2x32, blockRowsE5M2AVX2),
		quant.E5M2x128: scaledRows(quant.E5M2x128, blockRowsE5M2AVX2),
		quant.NF4x32:   scaledRows(quant.NF4x32, blockRowsNF4AVX2),
		quant.NF4x64:   scaledRows(quant.NF4x64, blockRowsNF4AVX2),
		quant.FP4x32:   scaledRows(quant.FP4x32, blockRowsFP4AVX2),
		quant.FP4x64:   scaledRows(quant.FP4x64, blockRowsFP4AVX2),
	},
	unpack: map[quant.Type]unpackFunc{
		quant.Int4x32:         unpackAVX2(quant.Int4x32, unpackInt4x32AVX2),
		quant.Int4x64:         unpackAVX2(quant.Int4x64, unpackInt4x64AVX2),
		quant.Int4x128:        unpackAVX2(quant.Int4x128, unpackInt4x128AVX2),
		quant.Int8x32:         unpackAVX2(quant.Int8x32, unpackInt8x32AVX2),
		quant.Int8x128:        unpackAVX2(quant.Int8x128, unpackInt8x128AVX2),
		quant.LLMInt8x32:      unpackAVX2(quant.LLMInt8x32, unpackLLMInt8x32AVX2),
		quant.LLMInt8x128:     unpackAVX2(quant.LLMInt8x128, unpackLLMInt8x128AVX2),
		quant.TensorNVFP4x128: unpackTensorNVFP4AVX2,
	},
	intRows: map[quant.Type]partFunc{
		quant.Int4x32:         intRowsAVX2(intRowsInt4x32AVX2),
		quant.Int4x64:         intRowsAVX2(intRowsInt4x64AVX2),
		quant.Int4x128:        intRowsAVX2(intRowsInt4x128AVX2),
		quant.Int8x32:         intRowsAVX2(intRowsInt8x32AVX2),
		quant.Int8x128:        intRowsAVX2(intRowsInt8x128AVX2),
		quant.LLMInt8x32:      intRowsAVX2(intRowsLLMInt8x32AVX2),
		quant.LLMInt8x128:     intRowsAVX2(intRowsLLMInt8x128AVX2),
		quant.TensorNVFP4x128: pointRows(noPoints, intRowsTensorNVFP4x128AVX2),
	},
}

// decodeBlocks decodes whole blocks by f.
func decodeBlocks(t quant.Type, f func(dst *float32, src *byte, blocks, parts int)) decodeFunc {
	return func(dst []float32, src []byte) {
		if n := len(dst) / t.BlockValues(); n > 0 {
			f(&dst[0], &src[0], n, t.BlockValues()/32)
		}
	}
}

// unpackTensorNVFP4AVX2 unpacks groups of two blocks; one that a row lacks must not divide by 0.
func unpackTensorNVFP4AVX2(dst []panelGroup, src []byte, s workspace) {
	size := quant.TensorNVFP4x128.BlockBytes()
	n := len(src) / (2 * size)
	if n > 0 {
		unpackTensorNVFP4x128AVX2(bytePtr(&dst[0]), &src[0], n, nil)
	}
	if n < len(dst) {
		tail := s.tail()[:2*size]
		padTail(tail, src[n*2*size:])
		binary.LittleEndian.PutUint32(tail[size:], math.Float32bits(1))
		unpackTensorNVFP4x128AVX2(bytePtr(&dst[n]), &tail[0], 1, nil)
	}
}

// scaledRows takes rows of blocks four at a time; where fewer are left the last one is taken again.
func scaledRows(t quant.Type, f func(rows **byte, x *float32, blocks, parts int, out *float32)) partFunc {
	return func(j *product, _ workspace, lo, hi int) {
		blocks, parts := j.w.Cols/t.BlockValues(), t.BlockValues()/32
		for i := lo; i < hi; i += 4 {
			var rows [4]*byte
			for k := range rows {
				rows[k] = &j.row(min(i+k, hi-1))[0]
			}
			if i+4 <= hi {
				f(&rows[0], &j.a.F32[0], blocks, parts, &j.out[i])
				continue
			}
			var out [4]float32
			f(&rows[0], &j.a.F32[0], blocks, parts, &out[0])
			copy(j.out[i:hi], out[:])
		}
	}
}
