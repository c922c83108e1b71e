package machine

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

var root = tree{os.DirFS("/")}

// ReadMemory reads physical memory, what is free of it, and every cgroup limit above us.
func ReadMemory() (Memory, error) { return root.memory() }

// ReadProcess reads what the system counts for this process.
func ReadProcess() (Process, bool) { return root.process() }

// ReadIO reads what the system counts of our reads. It is not always allowed in containers.
func ReadIO() (IO, bool) { return root.io() }

// CgroupPeak is the most memory that our own cgroup ever used (v2 memory.peak, v1
// memory.max_usage_in_bytes); ok is false in a root group, which counts the whole machine, and where
// the group is not ours alone.
func CgroupPeak() (bytes int64, ok bool) { return root.peak(os.Getpid()) }

// PhysicalCores is how many cores our processor set has: the default for compute threads.
func PhysicalCores() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return runtime.NumCPU()
	}
	var cpus []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return max(1, root.cores(cpus))
}
