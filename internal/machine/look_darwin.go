package machine

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// ReadMemory reads physical memory. What is free of it is not told simply here: a half is assumed.
func ReadMemory() (Memory, error) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Memory{}, fmt.Errorf("machine: hw.memsize: %w", err)
	}
	return Memory{
		Total:     int64(total),
		Available: int64(total / 2),
		Lacks:     []string{"free memory is not known on macOS: half of the physical memory is assumed"},
	}, nil
}

// PhysicalCores is how many cores there are: the default for compute threads.
func PhysicalCores() int {
	n, err := unix.SysctlUint32("hw.physicalcpu")
	if err != nil || n == 0 {
		return runtime.NumCPU()
	}
	return int(n)
}
