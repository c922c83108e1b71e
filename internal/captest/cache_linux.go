package captest

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// evictTries: pages that were just read sit in per-CPU lists for a moment and cannot be dropped.
const evictTries = 20

func evict(paths []string) error {
	for _, path := range paths {
		if err := evictOne(path); err != nil {
			return err
		}
	}
	return nil
}

func evictOne(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var left int64
	for range evictTries {
		if err := unix.Fsync(int(f.Fd())); err != nil {
			return fmt.Errorf("fsync %s: %w", path, err)
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			return fmt.Errorf("fadvise %s: %w", path, err)
		}
		if left, err = cachedFile(f); err != nil || left == 0 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("%d bytes of %s stay in the page cache: is it in use, or on a memory file system?", left, path)
}

func cached(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return cachedFile(f)
}

// cachedFile asks mincore, window by window. Mapping a file does not read it.
func cachedFile(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	const window = 1 << 30
	page := int64(os.Getpagesize())
	var total int64
	for at := int64(0); at < info.Size(); at += window {
		n := min(info.Size()-at, window)
		pages, err := residentPages(f, at, n, (n+page-1)/page)
		if err != nil {
			return 0, err
		}
		total += pages * page
	}
	return total, nil
}

func residentPages(f *os.File, at, n, pages int64) (int64, error) {
	data, err := unix.Mmap(int(f.Fd()), at, int(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("mmap %s: %w", f.Name(), err)
	}
	defer unix.Munmap(data)
	vec := make([]byte, pages)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE,
		uintptr(unsafe.Pointer(&data[0])), uintptr(n), uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		return 0, fmt.Errorf("mincore %s: %w", f.Name(), errno)
	}
	var resident int64
	for _, v := range vec {
		resident += int64(v & 1)
	}
	return resident, nil
}
