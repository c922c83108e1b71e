package mem

import (
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapPages maps n bytes. Huge ones start at a multiple of HugeSize: memory that is not aligned so
// gets no huge page at its ends, and direct reads into small pages reach half of a fast drive's
// speed.
func mapPages(n int, huge bool) ([]byte, error) {
	lead, advice := 0, unix.MADV_NOHUGEPAGE
	if huge {
		lead, advice = HugeSize, unix.MADV_HUGEPAGE
	}
	start, err := unix.MmapPtr(-1, 0, nil, uintptr(n+lead), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	if lead > 0 {
		skip := int(-uintptr(start) & (HugeSize - 1))
		// Untouched address space costs nothing should this fail.
		_ = unmapRange(start, skip)
		_ = unmapRange(unsafe.Add(start, skip+n), lead-skip)
		start = unsafe.Add(start, skip)
	}
	b := unsafe.Slice((*byte)(start), n)
	// A kernel without huge pages refuses the advice; the memory is as good.
	_ = unix.Madvise(b, advice)
	if huge {
		populate(b)
	}
	return b, nil
}

// populate makes huge pages resident before anybody uses them. Threads that touch one for the first
// time together (readers do) are charged with one each until all but one give theirs back, so up to
// 2 MiB a thread above what was leased. Here every huge page has one thread.
func populate(b []byte) {
	share := (len(b)/runtime.NumCPU() + HugeSize) &^ (HugeSize - 1)
	var all sync.WaitGroup
	for len(b) > 0 {
		part := b[:min(share, len(b))]
		b = b[len(part):]
		all.Go(func() {
			if unix.Madvise(part, unix.MADV_POPULATE_WRITE) == nil {
				return
			}
			for at := 0; at < len(part); at += HugeSize { // before Linux 5.14
				part[at] = 0
			}
		})
	}
	all.Wait()
}

func unmapRange(start unsafe.Pointer, n int) error {
	if n == 0 {
		return nil
	}
	return unix.MunmapPtr(start, uintptr(n))
}

func unmapPages(b []byte) error {
	if !invariants {
		return unmapRange(unsafe.Pointer(unsafe.SliceData(b)), len(b))
	}
	// The address range stays reserved, so that a stale slice faults and never meets new memory.
	if err := unix.Madvise(b, unix.MADV_DONTNEED); err != nil {
		return err
	}
	return unix.Mprotect(b, unix.PROT_NONE)
}
