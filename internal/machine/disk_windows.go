package machine

import "golang.org/x/sys/windows"

// FreeDisk returns the bytes that a user may still write under dir, and false if nobody knows.
func FreeDisk(dir string) (int64, bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(free), true
}
