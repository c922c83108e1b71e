package repack

import (
	"encoding/binary"
	"fmt"

	"github.com/spillway/spillway/internal/checkpoint/container"
)

// GPTQ and AWQ store weights with outputs and inputs exchanged: a row of a tensor holds one or a few
// inputs of all outputs. Scales are [groups, outputs], zero points [groups, outputs·bits/32].

// AddGPTQ adds a matrix of GPTQ: codes [cols·bits/32, rows], packed along the inputs.
func (f *File) AddGPTQ(x Ints, rows, cols int) (Matrix, error) {
	if err := x.bits(2, 3, 4, 8); err != nil {
		return Matrix{}, err
	}
	if err := x.whole(rows, cols); err != nil {
		return Matrix{}, err
	}
	if err := wants(x.Codes, "I32", cols*x.Bits/32, rows); err != nil {
		return Matrix{}, err
	}
	if err := x.exchanged(rows, cols); err != nil {
		return Matrix{}, err
	}
	f.exchanged = true
	return f.addInts(x, rows, cols, func(m matrix, o *order) []func(j *job) error {
		return []func(j *job) error{x.gptqCodes(m, o), x.groupScales(m), x.groupZeros(m, func(r int) int { return r })}
	})
}

// whole checks that no word is cut: neither one of codes nor one of zero points.
func (x *Ints) whole(rows, cols int) error {
	if cols%32 != 0 {
		return oddColumns(x.Codes, cols, x.group(cols))
	}
	if rows*x.Bits%32 != 0 {
		return fmt.Errorf("tensor %s: %d outputs of %d bits are no whole words of 32 bits", container.Name(x.Codes.Name), rows, x.Bits)
	}
	return nil
}

// exchanged checks scales and zero points.
func (x *Ints) exchanged(rows, cols int) error {
	groups := ceil(cols, x.group(cols))
	if err := wants(x.Scales, "F16 BF16 F32", groups, rows); err != nil {
		return err
	}
	return wants(x.Zeros, "I32", groups, rows*x.Bits/32)
}

// groupScales is the pass for scales [groups, outputs].
func (x *Ints) groupScales(m matrix) func(j *job) error {
	n, _ := numberOf(x.Scales)
	w := int64(n.bytes)
	group, values, size := x.group(m.cols), m.values, m.size
	return func(j *job) error {
		return j.columns(int(w), 1, func(lo, hi int) error {
			s := strip{t: x.Scales, stride: int64(m.rows) * w, s1: ceil(m.cols, group), b0: int64(lo) * w, n: int64(hi-lo) * w}
			return j.visit(s, func(g, count int, b []byte, pitch int) error {
				for i := range count {
					for r := lo; r < hi; r++ {
						row, v := j.row(r), n.f32(b[i*pitch+(r-lo)*int(w):])
						for k := (g + i) * group; k < min((g+i+1)*group, m.cols); k += values {
							setF32(row[k/values*size:], v)
						}
					}
				}
				return nil
			})
		})
	}
}

// groupZeros is the pass for zero points [groups, outputs·bits/32]; place tells in which order the
// outputs of eight are packed.
func (x *Ints) groupZeros(m matrix, place func(r int) int) func(j *job) error {
	group, values, size := x.group(m.cols), m.values, m.size
	mask := 1<<x.Bits - 1
	return func(j *job) error {
		return j.columns(x.Bits*4, 32, func(lo, hi int) error {
			// Whole runs of 32 outputs, so that none is cut.
			from, to := int64(lo/32*x.Bits*4), int64(min(ceil(hi, 32)*x.Bits*4, m.rows*x.Bits/8))
			s := strip{t: x.Zeros, stride: int64(m.rows * x.Bits / 8), s1: ceil(m.cols, group), b0: from, n: to - from}
			return j.visit(s, func(g, count int, b []byte, pitch int) error {
				for i := range count {
					src := b[i*pitch : i*pitch+int(to-from)]
					for r := lo; r < hi; r++ {
						row, zero := j.row(r), uint8((bitsAt(src, place(r-lo/32*32)*x.Bits)+x.ZeroPlus)&mask)
						for k := (g + i) * group; k < min((g+i+1)*group, m.cols); k += values {
							row[k/values*size+4] = zero
						}
					}
				}
				return nil
			})
		})
	}
}

// bitsAt returns up to 9 bits of a stream from the given one on, and more above them.
func bitsAt(b []byte, bit int) int {
	v := int(b[bit/8])
	if bit/8+1 < len(b) {
		v |= int(b[bit/8+1]) << 8
	}
	return v >> (bit % 8)
}

// lane is how many outputs are taken together: a cache line of words.
const lane = 16

// gptqCodes is the pass for codes packed along the inputs: words that hold whole runs of 32 of them.
func (x *Ints) gptqCodes(m matrix, o *order) func(j *job) error {
	straight := x.Bits == 4 && o == nil
	return func(j *job) error {
		var spots []int32
		if !straight {
			var err error
			if spots, err = o.spots(j, &m); err != nil {
				return err
			}
		}
		return j.columns(4*x.Bits, 1, func(lo, hi int) error {
			s := strip{t: x.Codes, stride: int64(4 * m.rows), s1: m.cols * x.Bits / 32, b0: int64(4 * lo), n: int64(4 * (hi - lo)), unit: x.Bits}
			return j.visit(s, func(s, count int, b []byte, pitch int) error {
				var rows [lane][]byte
				for r := lo; r < hi; r += lane {
					some := j.rows(&rows, r, hi)
					for i := 0; i < count; i += x.Bits {
						k, src := (s+i)/x.Bits*32, b[i*pitch+4*(r-lo):]
						if straight {
							gather(some, m.place(k), src, pitch)
						} else {
							x.scatter(some, &m, spots[k:k+32], src, pitch)
						}
					}
				}
				return nil
			})
		})
	}
}

// rows fills in the memory of up to lane rows from r on, to before hi.
func (j *job) rows(all *[lane][]byte, r, hi int) [][]byte {
	n := min(lane, hi-r)
	for i := range n {
		all[i] = j.row(r + i)
	}
	return all[:n]
}

func wordAt(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

// gather writes 32 codes of four bits of each row, which lie in four words pitch bytes apart.
func gather(rows [][]byte, at int, src []byte, pitch int) {
	s0, s1, s2, s3 := src, src[pitch:], src[2*pitch:], src[3*pitch:]
	for i, row := range rows {
		setHalves(row[at:], wordAt(s0, 4*i), wordAt(s1, 4*i), wordAt(s2, 4*i), wordAt(s3, 4*i))
	}
}

// scatter writes 32 codes of each row to their spots; they lie in words pitch bytes apart.
func (x *Ints) scatter(rows [][]byte, m *matrix, spots []int32, src []byte, pitch int) {
	mask := uint64(1<<x.Bits - 1)
	for q, row := range rows {
		var stream uint64
		have, word := 0, 0
		for _, spot := range spots {
			if have < x.Bits {
				stream |= uint64(wordAt(src, word*pitch+4*q)) << have
				have, word = have+32, word+1
			}
			m.set(row, spot, uint8(stream&mask))
			stream >>= x.Bits
			have -= x.Bits
		}
	}
}

// columns calls f for ranges of the job's rows whose strips, of so many bytes for every per rows, take
// at most half of the scratch.
func (j *job) columns(bytes, per int, f func(lo, hi int) error) error {
	step := max(len(j.scratch)/2/bytes*per/lane*lane, lane)
	for lo := j.r0; lo < j.r1; {
		hi := min(lo/step*step+step, j.r1)
		if err := f(lo, hi); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// awqOrder is which output of eight the i-th code of a word belongs to.
var awqOrder = [8]int{0, 2, 4, 6, 1, 3, 5, 7}

// awqPlace is where output r lies in a row of codes.
func awqPlace(r int) int { return r&^7 | (r>>1&3 | r&1<<2) }

// AddAWQ adds a matrix of AWQ's version "gemm": codes [cols, rows/8] of four bits, packed along the
// outputs in an order of their own.
func (f *File) AddAWQ(x Ints, rows, cols int) (Matrix, error) {
	if err := x.bits(4); err != nil {
		return Matrix{}, err
	}
	if err := x.whole(rows, cols); err != nil {
		return Matrix{}, err
	}
	if err := wants(x.Codes, "I32", cols, rows/8); err != nil {
		return Matrix{}, err
	}
	if err := x.exchanged(rows, cols); err != nil {
		return Matrix{}, err
	}
	f.exchanged = true
	return f.addInts(x, rows, cols, func(m matrix, _ *order) []func(j *job) error {
		return []func(j *job) error{x.awqCodes(m), x.groupScales(m), x.groupZeros(m, awqPlace)}
	})
}

// awqCodes is the pass for codes packed along the outputs: 32 inputs of eight outputs at a time.
func (x *Ints) awqCodes(m matrix) func(j *job) error {
	return func(j *job) error {
		return j.columns(32*4, 8, func(lo, hi int) error {
			first := lo / 8
			n := ceil(hi, 8) - first
			s := strip{t: x.Codes, stride: int64(m.rows / 2), s1: m.cols, b0: int64(4 * first), n: int64(4 * n), unit: 32}
			return j.visit(s, func(k, count int, b []byte, pitch int) error {
				for w := 0; w < n; w += lane {
					for i := 0; i < count; i += 32 {
						for v := w; v < min(w+lane, n); v++ {
							j.awqBlock(m.place(k+i), (first+v)*8, lo, hi, b[i*pitch+4*v:], pitch)
						}
					}
				}
				return nil
			})
		})
	}
}

// awqBlock writes 32 codes of outputs r to r + 7, as far as they are between lo and hi.
func (j *job) awqBlock(at, r, lo, hi int, b []byte, pitch int) {
	var out [4][8]uint32
	for c := range out {
		exchange(&out[c], b[8*c*pitch:], pitch)
	}
	for i, of := range awqOrder {
		if q := r + of; q >= lo && q < hi {
			setHalves(j.row(q)[at:], out[0][i], out[1][i], out[2][i], out[3][i])
		}
	}
}

// exchange reads eight words of eight codes, pitch bytes apart: word i of the result has code i of each.
// It is the transposition of a matrix by halves.
func exchange(w *[8]uint32, b []byte, pitch int) {
	for c := range w {
		w[c] = wordAt(b, c*pitch)
	}
	for c := range 4 {
		t := (w[c]>>16 ^ w[c+4]) & 0x0000ffff
		w[c+4] ^= t
		w[c] ^= t << 16
	}
	for _, c := range [4]int{0, 1, 4, 5} {
		t := (w[c]>>8 ^ w[c+2]) & 0x00ff00ff
		w[c+2] ^= t
		w[c] ^= t << 8
	}
	for c := 0; c < 8; c += 2 {
		t := (w[c]>>4 ^ w[c+1]) & 0x0f0f0f0f
		w[c+1] ^= t
		w[c] ^= t << 4
	}
}
