//go:build !linux

package machine

import "os"

// BinaryBytes is the size of the program's own file.
func BinaryBytes() int64 {
	exe, err := os.Executable()
	if err != nil {
		return 0
	}
	info, err := os.Stat(exe)
	if err != nil {
		return 0
	}
	return info.Size()
}

// BinaryFileBytes is the size of the program's own file.
func BinaryFileBytes() int64 { return BinaryBytes() }

// UntrimBinary undoes what TrimBinary does: nothing.
func UntrimBinary() error { return nil }

// TrimBinary does nothing: here page cache is not counted as the process's memory.
func TrimBinary() error { return nil }
