package tokenizer

import "encoding/binary"

// Alloc returns n zeroed bytes. The caller of Load gives one that leases memory outside the Go heap;
// the default is make.
type Alloc func(n int) ([]byte, error)

func heapAlloc(n int) ([]byte, error) { return make([]byte, n), nil }

// u32s is a slice of uint32 that may live in any memory, off the Go heap too.
type u32s []byte

func (a u32s) at(i uint32) uint32     { return binary.LittleEndian.Uint32(a[4*int(i):]) }
func (a u32s) set(i uint32, v uint32) { binary.LittleEndian.PutUint32(a[4*int(i):], v) }
func (a u32s) len() int               { return len(a) / 4 }

// u16s is a slice of uint16 that may live in any memory.
type u16s []byte

func (a u16s) at(i uint32) uint16     { return binary.LittleEndian.Uint16(a[2*int(i):]) }
func (a u16s) set(i uint32, v uint16) { binary.LittleEndian.PutUint16(a[2*int(i):], v) }

// tableSize is the number of slots of an open-addressing table for n entries: a power of two, at
// most 4/5 full.
func tableSize(n int) int {
	size := 16
	for size*4 < n*5 {
		size *= 2
	}
	return size
}
