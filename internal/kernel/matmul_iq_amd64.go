package kernel

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/spillway/spillway/internal/quant"
)

// pointTable returns a code book as the loops want it, made at the first call: points of 8 or 4 bytes,
// and around them what blends may read besides.
type pointTable func() *byte

const pointPadding = 32

var (
	pointsIQ1    = pointTable(sync.OnceValue(func() *byte { return flatPoints(append(timesEight(1), timesEight(-1)...)) }))
	pointsIQ1x8  = pointTable(sync.OnceValue(func() *byte { return flatPoints(timesEight(0)) }))
	pointsIQ2XXS = pointTable(sync.OnceValue(func() *byte { return flatPoints(quant.Points8(quant.IQ2XXS)) }))
	pointsIQ2XS  = pointTable(sync.OnceValue(func() *byte { return flatPoints(quant.Points8(quant.IQ2XS)) }))
	pointsIQ2S   = pointTable(sync.OnceValue(func() *byte { return flatPoints(quant.Points8(quant.IQ2S)) }))
	pointsIQ3XXS = pointTable(sync.OnceValue(func() *byte { return flatPoints(quant.Points4(quant.IQ3XXS)) }))
	pointsIQ3S   = pointTable(sync.OnceValue(func() *byte { return flatPoints(quant.Points4(quant.IQ3S)) }))
)

func noPoints() *byte { return nil }

func flatPoints[P [8]int8 | [4]int8](points []P) *byte {
	b := make([]byte, pointPadding, len(points)*len(points[0])+2*pointPadding)
	for _, p := range points {
		for i := range len(p) {
			b = append(b, byte(p[i]))
		}
	}
	return &b[:cap(b)][pointPadding]
}

// timesEight returns the points of the formats of one bit times 8, plus delta.
func timesEight(delta int8) [][8]int8 {
	points := slices.Clone(quant.Points8(quant.IQ1S))
	for k := range points {
		for i, v := range points[k] {
			points[k][i] = 8*v + delta
		}
	}
	return points
}

type pointRowsFunc func(w *byte, rowBytes int, rows int, groups int, mask *uint32, tail *byte, words *byte, acts *byte, out *float32, points *byte)

// pointRows is intRowsAVX2 for loops that look up points.
func pointRows(table pointTable, f pointRowsFunc) func(*product, workspace, int, int) {
	return intRowsAVX2(func(w *byte, rowBytes int, rows int, groups int, mask *uint32, tail *byte, words *byte, acts *byte, out *float32) {
		f(w, rowBytes, rows, groups, mask, tail, words, acts, out, table())
	})
}

type pointUnpackFunc func(dst *byte, src *byte, n int, points *byte, stride int)

const pieceBytes = 32 // of what panels hold in one piece

// pointUnpack is unpackAVX2 for loops that look up points.
func pointUnpack(t quant.Type, table pointTable, f pointUnpackFunc) func(dst []panelGroup, src []byte, s workspace) {
	return unpackAVX2(t, func(dst *byte, src *byte, n int) { f(dst, src, n, table(), pieceBytes) })
}

// pointPair unpacks to panels of 8 rows.
func pointPair(table pointTable, f pointUnpackFunc) pairFunc {
	return func(dst, first, second *byte, n int) {
		const stride = tileWeights * pieceBytes
		f(dst, first, n, table(), stride)
		f((*byte)(unsafe.Add(unsafe.Pointer(dst), pieceBytes)), second, n, table(), stride)
	}
}
