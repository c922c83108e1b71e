package kernel

import (
	"fmt"
	"math"
	"unsafe"
)

// groupValues is the number of values that the integer loops take at a time. Rows of activations are
// padded with zeros to a multiple of it.
const groupValues = 256

// actGroup is 256 activations of a row, rounded to 16 bits in blocks of 32, as docs/numerics.md
// defines.
type actGroup struct {
	q      [groupValues]int16 // in the order of lanePlaces
	scale  [8]float32         // a power of two, 0 or NaN, per block of 32
	offset [8]float32         // scale · f32(Σq) per block of 32
	sum32  [8]int32           // Σq per block of 32
	sum16  [16]int32          // Σq per run of 16
}

// lanePlaces is where a group stores its value k for products with unpacked weights. In each run of
// 8 × 2 values, pair r belongs to block r of 32, so that a 256-bit multiply-and-add of 16-bit words
// leaves the sums of 8 blocks in its 8 lanes. The first half of the group holds the first 16 values
// of each block; in a half those of even index come first, as unpacking bytes leaves them.
var lanePlaces = places(func(block, unit, odd, i int) int {
	return ((unit*2+odd)*4+i/2)*16 + block*2 + i%2
})

// wordPlaces is the order for products with weights as they are stored: there masking and shifting
// 16-bit words unpacks the even or the odd bytes of 16. A 256-bit vector holds 8 values of unit u of
// 16, then 8 of u+8, so that the sums of both stay in their halves.
var wordPlaces = places(func(block, unit, odd, i int) int {
	u := block*2 + unit
	return u%8*32 + odd*16 + u/8*8 + i
})

// places tabulates an order; unit is 0 or 1 in a block, i counts its even or its odd values.
func places(at func(block, unit, odd, i int) int) (t [groupValues]uint8) {
	for k := range t {
		t[k] = uint8(at(k/32, k%32/16, k%2, k%16/2))
	}
	return t
}

// Acts holds rows of activations in the forms that products need: in f32, for float weights and for
// exact products, and, if made so, rounded to 16 bits per block of 32, for quantized weights.
type Acts struct {
	Rows, Cols int
	Stride     int       // values from row to row: at least PaddedCols(Cols), see rowStride
	F32        []float32 // Rows × Stride, zero from Cols on
	groups     []actGroup
	words      []int16 // of up to wordRows rows: the 16-bit form again, in the order of wordPlaces
}

// PaddedCols returns the values that a row of activations has with its padding: cols rounded up to a
// multiple of 256.
func PaddedCols(cols int) int { return (cols + groupValues - 1) / groupValues * groupValues }

// rowStride returns the values from row to row. Rows of whole pages would share a few sets of the cache, so
// those of more than a few rows are a cache line longer.
func rowStride(rows, cols int) int {
	n := PaddedCols(cols)
	if rows > wordRows && n*4%4096 == 0 {
		n += 64 / 4
	}
	return n
}

const (
	actAlign = 64
	wordRows = 2 // how many rows at most meet weights as they are stored
)

// ActsBytes returns the bytes that MakeActs needs.
func ActsBytes(rows, cols int, integer bool) int {
	groups := rows * PaddedCols(cols) / groupValues
	n := rows * rowStride(rows, cols) * 4
	if integer {
		n += groups * int(unsafe.Sizeof(actGroup{}))
	}
	if integer && rows <= wordRows {
		n += groups * groupValues * 2
	}
	return n + actAlign
}

// MakeActs makes activations of rows × cols values in buf, which must have ActsBytes bytes and stays
// the caller's. With integer they hold the 16-bit form too. Values are undefined until SetRow.
func MakeActs(buf []byte, rows, cols int, integer bool) Acts {
	if rows < 1 || cols < 1 || len(buf) < ActsBytes(rows, cols, integer) {
		panic(fmt.Sprintf("kernel: %d bytes for %d × %d activations", len(buf), rows, cols))
	}
	a := Acts{Rows: rows, Cols: cols, Stride: rowStride(rows, cols)}
	next := alignUp(unsafe.Pointer(unsafe.SliceData(buf)), actAlign)
	a.F32 = unsafe.Slice((*float32)(next), rows*a.Stride)
	if !integer {
		return a
	}
	next = unsafe.Add(next, rows*a.Stride*4)
	a.groups = unsafe.Slice((*actGroup)(next), rows*PaddedCols(cols)/groupValues)
	if rows <= wordRows {
		next = unsafe.Add(next, len(a.groups)*int(unsafe.Sizeof(actGroup{})))
		a.words = unsafe.Slice((*int16)(next), rows*a.Stride)
	}
	return a
}

func alignUp(p unsafe.Pointer, align uintptr) unsafe.Pointer {
	return unsafe.Add(p, -uintptr(p)&(align-1))
}

// Integer reports whether a holds the 16-bit form.
func (a *Acts) Integer() bool { return a.groups != nil }

// Limit returns the first rows of a, sharing its memory.
func (a *Acts) Limit(rows int) Acts {
	b := *a
	b.Rows = rows
	b.F32 = a.F32[:rows*a.Stride]
	if a.groups != nil {
		b.groups = a.groups[:rows*(a.Stride/groupValues)]
	}
	return b
}

// SetRow sets row r to x, which has Cols values, in every form that a holds.
func (a *Acts) SetRow(r int, x []float32) {
	row := a.F32[r*a.Stride : (r+1)*a.Stride]
	copy(row, x[:a.Cols])
	clear(row[a.Cols:])
	if a.groups != nil {
		active.matmul.quantize(a.row(r), a.wordRow(r), row)
	}
}

// SetRows sets every row: row r to x[r*stride : r*stride+Cols].
func (a *Acts) SetRows(p *Pool, x []float32, stride int) {
	if a.Rows == 1 || a.Rows*a.Cols < 4096 {
		for r := range a.Rows {
			a.SetRow(r, x[r*stride:])
		}
		return
	}
	s := rowSettings.get()
	s.a, s.x, s.stride = *a, x, stride
	p.Run(a.Rows, s.run)
	s.a, s.x = Acts{}, nil
	rowSettings.put(s)
}

// rowSetting is one SetRows on its way through the pool.
type rowSetting struct {
	a      Acts
	x      []float32
	stride int
	run    func(worker, row int)
}

var rowSettings = kept[rowSetting]{make: func() *rowSetting {
	s := new(rowSetting)
	s.run = s.set // once, so that SetRows allocates nothing
	return s
}}

func (s *rowSetting) set(_, r int) { s.a.SetRow(r, s.x[r*s.stride:]) }

func (a *Acts) row(r int) []actGroup {
	n := a.Stride / groupValues
	return a.groups[r*n : (r+1)*n]
}

// wordRow returns row r's words, or nil.
func (a *Acts) wordRow(r int) []int16 {
	if a.words == nil {
		return nil
	}
	return a.words[r*a.Stride : (r+1)*a.Stride]
}

// quantizeGo rounds the padded row x to groups, and to words if there are any.
func quantizeGo(groups []actGroup, words []int16, x []float32) {
	for i := range groups {
		g, v := &groups[i], x[i*groupValues:(i+1)*groupValues]
		for b := range g.scale {
			g.setBlock(b, v[b*32:b*32+32])
		}
		if words == nil {
			continue
		}
		for k := range groupValues {
			words[i*groupValues+int(wordPlaces[k])] = g.q[lanePlaces[k]]
		}
	}
}

func (g *actGroup) setBlock(b int, x []float32) {
	scale, inverse := blockScale(x)
	g.scale[b] = scale
	for i := range 2 {
		sum := int32(0)
		for k := i * 16; k < i*16+16; k++ {
			q := roundAct(x[k], inverse)
			g.q[lanePlaces[b*32+k]] = q
			sum += int32(q)
		}
		g.sum16[b*2+i] = sum
	}
	g.sum32[b] = g.sum16[b*2] + g.sum16[b*2+1]
	g.offset[b] = scale * float32(g.sum32[b])
}

// blockScale returns the scale of a block of 32 and its inverse; both are powers of two, or the
// inverse is 0 where every q is 0.
func blockScale(x []float32) (scale, inverse float32) {
	top := uint32(0)
	for _, v := range x {
		top = max(top, math.Float32bits(v)&0x7fffffff)
	}
	switch e := top >> 23; { // 2^(e−127) ≤ largest value < 2^(e−126)
	case e == 255:
		return math.Float32frombits(0x7fc00000), 0
	case e < 127-100:
		return 0, 0
	default:
		return math.Float32frombits((e - 14) << 23), math.Float32frombits((268 - e) << 23)
	}
}

// roundAct returns x·inverse, rounded half to even and clamped to ±32767.
func roundAct(x, inverse float32) int16 {
	if inverse == 0 { // x may be infinite or NaN
		return 0
	}
	v := math.RoundToEven(float64(x * inverse))
	return int16(min(max(v, -32767), 32767))
}
