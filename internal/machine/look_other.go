//go:build !linux && !darwin && !windows

package machine

import (
	"errors"
	"runtime"
)

// ReadMemory is not possible on this operating system.
func ReadMemory() (Memory, error) {
	return Memory{}, errors.New("machine: memory is not read on " + runtime.GOOS + "; give --memory a size")
}

// PhysicalCores is how many processors there are.
func PhysicalCores() int { return runtime.NumCPU() }
