package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
)

// CacheType is a number format of the key-value cache (docs/numerics.md, "The key-value cache").
type CacheType uint8

// The number formats of the cache. CacheQ8 holds blocks of 32 values of a head: an f16 scale and int8.
const (
	CacheF16 CacheType = iota
	CacheF32
	CacheBF16
	CacheFP8 // E4M3 without infinities
	CacheQ8
	cacheTypes

	// cacheTile is what a tile is widened to: f32 that lies in the first-level cache.
	cacheTile = cacheTypes
)

var cacheNames = [cacheTypes]string{"f16", "f32", "bf16", "fp8", "q8_0"}

// String returns the name that --kv takes.
func (t CacheType) String() string { return cacheNames[t] }

// ParseCacheType returns the format of that name; the error lists the names.
func ParseCacheType(name string) (CacheType, error) {
	for t, n := range cacheNames {
		if n == name {
			return CacheType(t), nil
		}
	}
	return 0, fmt.Errorf("%q is not a type of the key-value cache; choose one of %s", name, strings.Join(CacheTypeNames(), ", "))
}

// CacheTypeNames lists the names from the most exact to the smallest.
func CacheTypeNames() []string { return []string{"f32", "f16", "bf16", "q8_0", "fp8"} }

// Lossy reports whether values are rounded more than f16, the default, rounds them.
func (t CacheType) Lossy() bool { return t != CacheF32 && t != CacheF16 }

// BlockValues returns the number of values that share bytes: a head has a multiple of them.
func (t CacheType) BlockValues() int {
	if t == CacheQ8 {
		return q8Values
	}
	return 1
}

const (
	q8Values = 32
	q8Bytes  = 2 + q8Values
)

// RowBytes returns the bytes of n values, a multiple of BlockValues.
func (t CacheType) RowBytes(n int) int {
	switch t {
	case CacheF32, cacheTile:
		return 4 * n
	case CacheFP8:
		return n
	case CacheQ8:
		return n / q8Values * q8Bytes
	}
	return 2 * n
}

// Store rounds src into the cache's row dst, half to even. finite is false if any result is not a
// finite number, be it by overflow or because the value was none; dst is then not to be read.
func (t CacheType) Store(dst []byte, src []float32) (finite bool) {
	switch t {
	case CacheF16:
		return ToF16(mem.AsUint16s(dst), src)
	case CacheF32:
		copy(mem.AsFloat32s(dst), src)
		return AllFinite(src)
	}
	return active.vector.store(t, dst, src)
}

// storeGo is Store for BF16, FP8 and Q8.
func storeGo(t CacheType, dst []byte, src []float32) (finite bool) {
	switch t {
	case CacheBF16:
		return toBF16(dst, src)
	case CacheFP8:
		return toFP8(dst, src)
	}
	return toQ8(dst, src)
}

func toBF16(dst []byte, src []float32) bool {
	finite := true
	for i, v := range src {
		h := quant.F32ToBF16(v)
		binary.LittleEndian.PutUint16(dst[2*i:], h)
		finite = finite && h&0x7f80 != 0x7f80
	}
	return finite
}

const (
	fp8Subnormal = 0x1p14 // its last bit is worth 2^-9, as the last bit of E4M3's subnormal numbers
	fp8Least     = 121 << 23
	fp8Top       = 0x7e
)

func toFP8(dst []byte, src []float32) bool {
	finite := true
	for i, v := range src {
		b := math.Float32bits(v)
		m := b & 0x7fffffff
		var code uint32
		if m < fp8Least {
			code = math.Float32bits(math.Float32frombits(m)+fp8Subnormal) - math.Float32bits(fp8Subnormal)
		} else {
			code = (m+0x7ffff+m>>20&1)>>20 - 120<<3
		}
		finite = finite && code <= fp8Top
		dst[i] = byte(b>>24&0x80 | code&0x7f)
	}
	return finite
}

// fp8ToF32 widens a code. 0x7f, which E4M3 has for NaN, does not occur and counts as 480.
func fp8ToF32(c byte) float32 {
	return quant.F16ToF32(uint16(c&0x80)<<8|uint16(c&0x7f)<<7) * 256
}

func toQ8(dst []byte, src []float32) bool {
	finite := true
	for ; len(src) > 0; src, dst = src[q8Values:], dst[q8Bytes:] {
		var top uint32
		for _, v := range src[:q8Values] {
			top = max(top, math.Float32bits(v)&0x7fffffff)
		}
		h := quant.F32ToF16(math.Float32frombits(top) / 127)
		finite = finite && top < 0x7f800000 && h < 0x7c00
		binary.LittleEndian.PutUint16(dst, h)
		d := quant.F16ToF32(h)
		for i, v := range src[:q8Values] {
			q := float64(0)
			if d > 0 {
				q = min(max(math.RoundToEven(float64(v/d)), -127), 127)
			}
			dst[2+i] = byte(int8(q))
		}
	}
	return finite
}

// widenRowGo widens a row of n values.
func widenRowGo(t CacheType, dst []float32, src []byte) {
	switch t {
	case CacheF32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case CacheF16:
		for i := range dst {
			dst[i] = quant.F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case CacheBF16:
		for i := range dst {
			dst[i] = quant.BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case CacheFP8:
		for i := range dst {
			dst[i] = fp8ToF32(src[i])
		}
	case CacheQ8:
		for i := range dst {
			block := src[i/q8Values*q8Bytes:]
			dst[i] = float32(int8(block[2+i%q8Values])) * f16At(block)
		}
	}
}
