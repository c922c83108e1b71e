package kernel

import (
	"unsafe"

	"github.com/spillway/spillway/internal/quant"
)

// iqRows512 are the AVX-512 loops over stored weights of the formats of matmul_iq_amd64.go.
var iqRows512 = map[quant.Type]func(j *product, s workspace, lo, hi int){
	quant.IQ1S:   (&pointRows512{intRowsIQ1SAVX512, pointsIQ1x8, true}).run,
	quant.IQ1M:   (&pointRows512{intRowsIQ1MAVX512, pointsIQ1, true}).run,
	quant.IQ2XXS: (&pointRows512{intRowsIQ2XXSAVX512, pointsIQ2XXS, true}).run,
	quant.IQ2XS:  (&pointRows512{intRowsIQ2XSAVX512, pointsIQ2XS, true}).run,
	quant.IQ2S:   (&pointRows512{intRowsIQ2SAVX512, pointsIQ2S, true}).run,
	quant.IQ3XXS: (&pointRows512{intRowsIQ3XXSAVX512, pointsIQ3XXS, true}).run,
	quant.IQ3S:   (&pointRows512{intRowsIQ3SAVX512, pointsIQ3S, true}).run,
	quant.IQ4XS:  (&pointRows512{intRowsIQ4XSAVX512, noPoints, true}).run,
	quant.TQ1_0:  (&pointRows512{intRowsTQ1_0AVX512, noPoints, false}).run,
	quant.TQ2_0:  (&pointRows512{intRowsTQ2_0AVX512, noPoints, false}).run,
	quant.Q1_0:   (&pointRows512{intRowsQ1_0AVX512, noPoints, true}).run,
	quant.Q2_0:   (&pointRows512{intRowsQ2_0AVX512, noPoints, true}).run,
	quant.MXFP4:  (&pointRows512{intRowsMXFP4AVX512, noPoints, true}).run,
	quant.NVFP4:  (&pointRows512{intRowsNVFP4AVX512, noPoints, true}).run,
}

// pointRows512 multiplies rows as they are stored. With reorder its loop takes activations in the order
// of points, which a task makes for itself.
type pointRows512 struct {
	rows    pointRowsFunc
	table   pointTable
	reorder bool
}

func (f *pointRows512) run(j *product, s workspace, lo, hi int) {
	if f.reorder && 2*j.a.Stride > panelBytes(j.w.Cols) { // wider than any model
		avx2Matmul.intRows[j.w.Type](j, s, lo, hi)
		return
	}
	for r := range j.a.Rows {
		words := bytePtr(&j.a.wordRow(r)[0])
		if f.reorder {
			pointWordsAVX2(&s.mem[0], words, j.a.Stride/groupValues)
			words = &s.mem[0]
		}
		if j.w.Cols%groupValues == 0 {
			f.call(j, words, r, lo, hi-lo, nil, nil)
		} else {
			f.tails(j, s, words, r, lo, hi)
		}
	}
}

// call multiplies n rows of weights from i on with row r of activations, whose words come as the loop
// wants them.
func (f *pointRows512) call(j *product, words *byte, r, i, n int, mask *uint32, tail *byte) {
	f.rows(&j.row(i)[0], j.rowBytes, n, j.w.Cols/groupValues, mask, tail, words,
		bytePtr(&j.a.row(r)[0]), &j.out[r*j.outStride+i], f.table())
}

// tails takes rows whose last group is not whole, see tailRows.
func (f *pointRows512) tails(j *product, s workspace, words *byte, r, lo, hi int) {
	mask := (*[8]uint32)(unsafe.Pointer(&s.tail()[tailBytes-32]))
	*mask = tailMask(j.w.Cols)
	whole, group := j.w.Cols/groupValues, intFormats[j.w.Type].bytes
	safe := (len(j.w.Data)-(whole+1)*group+j.rowBytes)/j.rowBytes - lo
	if safe = min(safe, hi-lo); safe > 0 {
		f.call(j, words, r, lo, safe, &mask[0], nil)
		lo += safe
	}
	for ; lo < hi; lo++ {
		tail := s.tail()[:group]
		padTail(tail, j.row(lo)[whole*group:])
		f.call(j, words, r, lo, 1, &mask[0], &tail[0])
	}
}
