package mem

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// Huge pages need a privilege that few accounts have, so they are not asked for.
func mapPages(n int, _ bool) ([]byte, error) {
	addr, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	// The address comes from outside the Go heap; reading it through its own variable is the
	// conversion that vet accepts.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n), nil
}

func unmapPages(b []byte) error {
	return windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(b))), 0, windows.MEM_RELEASE)
}
