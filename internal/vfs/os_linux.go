package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func openFile(path string) (opened, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
	if errors.Is(err, unix.EINVAL) {
		return openBuffered(path, "the file system refuses direct I/O")
	}
	if err != nil {
		return opened{}, err
	}
	align, sure := directAlign(file)
	why := ""
	switch {
	case inMemory(file):
		why = "the file lies in memory (tmpfs)"
	case align == 0:
		why = "the file system has no direct I/O for this file"
	default:
		return opened{file: file, align: align, sure: sure}, nil
	}
	if err := file.Close(); err != nil {
		return opened{}, err
	}
	return openBuffered(path, why)
}

// inMemory reports whether the file system is the page cache itself. Newer kernels accept O_DIRECT
// there, and it means nothing.
func inMemory(file *os.File) bool {
	var st unix.Statfs_t
	err := control(file, func(fd uintptr) error { return unix.Fstatfs(int(fd), &st) })
	magic := uint32(st.Type)
	return err == nil && (magic == unix.TMPFS_MAGIC || magic == unix.RAMFS_MAGIC)
}

func openBuffered(path, why string) (opened, error) {
	file, err := os.Open(path)
	if err != nil {
		return opened{}, err
	}
	adviseRandom(file)
	return opened{file: file, align: 1, why: why}, nil
}

// directAlign asks the file system for what direct I/O needs: 0 where there is none. Old kernels and
// some file systems do not say; the answer is then a guess and not sure.
func directAlign(file *os.File) (align int, sure bool) {
	var st unix.Statx_t
	call := func(fd uintptr) error { return unix.Statx(int(fd), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st) }
	if err := control(file, call); err != nil || st.Mask&unix.STATX_DIOALIGN == 0 {
		return defaultAlign, false
	}
	align = int(max(st.Dio_offset_align, st.Dio_mem_align))
	if align == 0 || align&(align-1) != 0 || align > 1<<20 {
		return 0, true
	}
	return align, true
}

// readOnce is one pread; a signal repeats it.
func readOnce(file *os.File, p []byte, off int64) (n int, err error) {
	err = control(file, func(fd uintptr) error {
		for {
			n, err = unix.Pread(int(fd), p, off)
			if err != unix.EINTR {
				return err
			}
		}
	})
	return max(n, 0), err
}

func refusesDirect(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP)
}

// setBuffered takes O_DIRECT off an open file.
func setBuffered(file *os.File) error {
	err := control(file, func(fd uintptr) error {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err != nil {
			return err
		}
		_, err = unix.FcntlInt(fd, unix.F_SETFL, flags&^unix.O_DIRECT)
		return err
	})
	if err == nil {
		adviseRandom(file)
	}
	return err
}

// adviseRandom keeps the kernel from reading ahead of us into the page cache. It is advice: where it
// is not taken, more is cached for a moment.
func adviseRandom(file *os.File) {
	_ = control(file, func(fd uintptr) error { return unix.Fadvise(int(fd), 0, 0, unix.FADV_RANDOM) })
}

// dropBehind takes what a read left out of the page cache. The kernel drops whole pages only.
func dropBehind(file *os.File, off int64, n int) {
	start, size := Span(off, n, os.Getpagesize())
	_ = control(file, func(fd uintptr) error { return unix.Fadvise(int(fd), start, int64(size), unix.FADV_DONTNEED) })
}

func fileID(_ *os.File, info fs.FileInfo) (ID, error) {
	id := ID{MTime: info.ModTime().UnixNano(), Size: info.Size()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Dev, id.Inode = uint64(st.Dev), st.Ino
	}
	return id, nil
}

// DropCache writes a file's changes to the drive and takes it out of the page cache.
func DropCache(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	err = errors.Join(file.Sync(), control(file, func(fd uintptr) error {
		return unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED)
	}))
	return errors.Join(err, file.Close())
}
