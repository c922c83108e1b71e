package mem

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

func reservePages(n int) ([]byte, error) {
	addr, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n), nil // see mapPages
}

func releasePages(b []byte) error { return unmapPages(b) }

// resizePages lets the first to instead of the first from bytes of b be memory.
func resizePages(b []byte, from, to int) error {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	switch {
	case to > from:
		_, err := windows.VirtualAlloc(start+uintptr(from), uintptr(to-from), windows.MEM_COMMIT, windows.PAGE_READWRITE)
		return err
	case to < from:
		return windows.VirtualFree(start+uintptr(to), uintptr(from-to), windows.MEM_DECOMMIT)
	}
	return nil
}
