//go:build unix && !linux

package mem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func reservePages(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

func releasePages(b []byte) error { return unix.Munmap(b) }

// resizePages lets the first to instead of the first from bytes of b be memory.
func resizePages(b []byte, from, to int) error {
	if to > from {
		return unix.Mprotect(b[from:to], unix.PROT_READ|unix.PROT_WRITE)
	}
	if to == from {
		return nil
	}
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b[to:])), uintptr(from-to), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
	return err
}
