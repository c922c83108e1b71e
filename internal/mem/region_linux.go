package mem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const noAccess = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE

// reservePages reserves addresses that begin at a multiple of HugeSize.
func reservePages(n int) ([]byte, error) {
	start, err := unix.MmapPtr(-1, 0, nil, uintptr(n+HugeSize), unix.PROT_NONE, noAccess)
	if err != nil {
		return nil, err
	}
	skip := int(-uintptr(start) & (HugeSize - 1))
	_ = unmapRange(start, skip)
	_ = unmapRange(unsafe.Add(start, skip+n), HugeSize-skip)
	return unsafe.Slice((*byte)(unsafe.Add(start, skip)), n), nil
}

func releasePages(b []byte) error { return unmapRange(unsafe.Pointer(unsafe.SliceData(b)), len(b)) }

// resizePages lets the first to instead of the first from bytes of b be memory. Whole huge pages are huge ones.
// One that is cut is given back and its rest put into small ones: else all of it would count until the kernel
// needs memory.
func resizePages(b []byte, from, to int) error {
	cut := min(from, to) &^ (HugeSize - 1)
	keep := min(from, to) - cut
	if to < from { // before anything else is mapped
		if err := dropPages(b[min((to+HugeSize-1)&^(HugeSize-1), from):from]); err != nil {
			return err
		}
		from = min((to+HugeSize-1)&^(HugeSize-1), from)
		if from == to {
			return nil
		}
	}
	var rest []byte
	if keep > 0 {
		var err error
		if rest, err = mapPages(keep, false); err != nil {
			return err
		}
		copy(rest, b[cut:])
		defer func() { _ = unmapRange(unsafe.Pointer(unsafe.SliceData(rest)), len(rest)) }()
	}
	if err := dropPages(b[cut:from]); err != nil {
		return err
	}
	if err := addPages(b[cut:to]); err != nil {
		return err
	}
	copy(b[cut:], rest)
	return nil
}

func dropPages(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), unix.PROT_NONE, noAccess|unix.MAP_FIXED)
	return err
}

func addPages(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return err
	}
	huge := b[:len(b)&^(HugeSize-1)]
	if len(huge) > 0 {
		_ = unix.Madvise(huge, unix.MADV_HUGEPAGE)
		populate(huge)
	}
	if rest := b[len(huge):]; len(rest) > 0 {
		_ = unix.Madvise(rest, unix.MADV_NOHUGEPAGE)
	}
	return nil
}
