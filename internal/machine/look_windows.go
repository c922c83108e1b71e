package machine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length                                           uint32
	load                                             uint32
	totalPhys, availPhys, totalPage, availPage       uint64
	totalVirtual, availVirtual, availExtendedVirtual uint64
}

var globalMemoryStatusEx = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// ReadMemory reads physical memory and what is free of it.
func ReadMemory() (Memory, error) {
	var s memoryStatus
	s.length = uint32(unsafe.Sizeof(s))
	if ok, _, err := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return Memory{}, fmt.Errorf("machine: GlobalMemoryStatusEx: %w", err)
	}
	return Memory{
		Total:     int64(s.totalPhys),
		Available: int64(s.availPhys),
		Lacks:     []string{"limits of job objects are not read on Windows"},
	}, nil
}

// PhysicalCores is how many processors there are: which of them share a core is not read here.
func PhysicalCores() int { return runtime.NumCPU() }
