//go:build linux || darwin

package machine

import "golang.org/x/sys/unix"

// FreeDisk returns the bytes that a user may still write under dir, and false if nobody knows.
func FreeDisk(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
