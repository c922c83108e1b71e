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

// An entry of an open-addressing table is a number, of which 0 is kept for free slots, and 7 more bits
// of the hash, which spare most looks at what the number stands for. Numbers are below maxTokens.
const entryBits = 25

func entry(hash uint64, n uint32) uint32 { return uint32(hash>>32)&^(1<<entryBits-1) | (n + 1) }

func entryOf(e uint32) uint32 { return e&(1<<entryBits-1) - 1 }

func sameTag(e uint32, hash uint64) bool { return (e^uint32(hash>>32))>>entryBits == 0 }

// tableSize is the number of slots of an open-addressing table for n entries: a power of two, at
// most 4/5 full.
func tableSize(n int) int {
	size := 16
	for size*4 < n*5 {
		size *= 2
	}
	return size
}
