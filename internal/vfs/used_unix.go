//go:build unix

package vfs

import (
	"io/fs"
	"syscall"
)

// SpaceUsed returns the bytes of the drive that a file occupies: less than its size if it has holes.
func SpaceUsed(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Blocks) * 512
	}
	return info.Size()
}
