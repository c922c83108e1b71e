package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropWritten waits until the file's dirty pages are on the drive and drops them. It is about memory,
// not about durability, and devices and pipes refuse it: errors mean that there was nothing to drop.
func dropWritten(file *os.File) {
	_ = control(file, func(fd uintptr) error {
		var st unix.Statfs_t
		if err := unix.Fstatfs(int(fd), &st); err == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC {
			_ = unix.Fdatasync(int(fd)) // the pages belong to a file below, which the other call does not reach
		} else {
			const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
			_ = unix.SyncFileRange(int(fd), 0, 0, all)
		}
		return unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED)
	})
}
