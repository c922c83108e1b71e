//go:build unix && !linux

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func openFile(path string) (opened, error) {
	file, err := os.Open(path)
	if err != nil {
		return opened{}, err
	}
	if err := bypassCache(file); err != nil {
		return opened{file: file, align: 1, why: "the page cache cannot be bypassed here: " + err.Error()}, nil
	}
	return opened{file: file, align: defaultAlign, sure: true}, nil
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

// refusesDirect is never so: bypassing the cache is advice that is taken when the file is opened.
func refusesDirect(error) bool { return false }

func setBuffered(*os.File) error { return errors.ErrUnsupported }

// dropBehind does nothing: there is no such advice here.
func dropBehind(*os.File, int64, int) {}

func fileID(_ *os.File, info fs.FileInfo) (ID, error) {
	id := ID{MTime: info.ModTime().UnixNano(), Size: info.Size()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Dev, id.Inode = uint64(st.Dev), uint64(st.Ino)
	}
	return id, nil
}

// DropCache is not possible on this operating system.
func DropCache(string) error { return errors.ErrUnsupported }
