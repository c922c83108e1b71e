package mem

import (
	"fmt"
	"unsafe"
)

// Number is a fixed-size value of the machine.
type Number interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// As views bytes as values in the machine's byte order, without a copy. The length must be a
// multiple of the value's size, else it panics. The address need not be aligned: the processors we
// run on read values anywhere.
func As[T Number](b []byte) []T {
	var v T
	size := int(unsafe.Sizeof(v))
	if len(b)%size != 0 {
		panic(fmt.Sprintf("mem: %d bytes are not a whole number of %T", len(b), v))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

// From views values as bytes in the machine's byte order, without a copy.
func From[T Number](s []T) []byte {
	var v T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(v)))
}

// AsFloat32s views bytes as f32 values.
func AsFloat32s(b []byte) []float32 { return As[float32](b) }

// AsUint16s views bytes as 16-bit patterns, such as f16 or bf16 values.
func AsUint16s(b []byte) []uint16 { return As[uint16](b) }

// FromFloat32s views f32 values as bytes.
func FromFloat32s(s []float32) []byte { return From(s) }

// AlignUp returns the part of b that starts at a multiple of align, a power of two; it is empty if
// b ends before.
func AlignUp(b []byte, align int) []byte {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(align-1))
	return b[min(skip, len(b)):]
}

// IsAligned reports whether b starts at a multiple of align, a power of two.
func IsAligned(b []byte, align int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))&uintptr(align-1) == 0
}
