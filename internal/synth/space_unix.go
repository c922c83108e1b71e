//go:build linux || darwin

package synth

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that a user may still write under dir, and false if nobody knows.
func freeSpace(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
