//go:build unix && !linux

package mem

import "golang.org/x/sys/unix"

// Huge pages are the operating system's own choice here.
func mapPages(n int, _ bool) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

func unmapPages(b []byte) error { return unix.Munmap(b) }
