package mem

import "golang.org/x/sys/unix"

func mapPages(n int, huge bool) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	advice := unix.MADV_NOHUGEPAGE
	if huge {
		advice = unix.MADV_HUGEPAGE
	}
	// A kernel without huge pages refuses the advice; the memory is as good.
	_ = unix.Madvise(b, advice)
	return b, nil
}

func unmapPages(b []byte) error {
	if !invariants {
		return unix.Munmap(b)
	}
	// The address range stays reserved, so that a stale slice faults and never meets new memory.
	if err := unix.Madvise(b, unix.MADV_DONTNEED); err != nil {
		return err
	}
	return unix.Mprotect(b, unix.PROT_NONE)
}
