//go:build !linux

package machine

// ReadProcess has no reading on this operating system.
func ReadProcess() (Process, bool) { return Process{}, false }

// ReadIO has no reading on this operating system.
func ReadIO() (IO, bool) { return IO{}, false }

// CgroupPeak has no reading on this operating system.
func CgroupPeak() (bytes int64, ok bool) { return 0, false }
