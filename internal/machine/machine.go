// Package machine only looks: what memory, processors and limits this computer has, and what the
// operating system counts for this process. Linux tells everything; elsewhere a reading that does
// not exist says so (ok = false, or a line in Memory.Lacks).
package machine

// Memory is what this process may use, in bytes.
type Memory struct {
	Total     int64    // physical memory
	Available int64    // what the system could give now without swapping
	Groups    []Group  // every cgroup level above us that has a limit, our own first
	Lacks     []string // what this operating system does not tell, for people
}

// Group is one cgroup level that limits us, in bytes.
type Group struct {
	Version     int    // 1 or 2
	Path        string // directory of the group
	Limit       int64
	Usage       int64
	Reclaimable int64 // clean page cache and reclaimable kernel memory within Usage
}

// headroom that Auto leaves free.
const (
	minHeadroom     = 256 * MiB
	headroomDivisor = 20 // 5 %
)

// Smallest is the least of physical memory and every limit: what a percentage refers to.
func (m Memory) Smallest() int64 {
	n := m.Total
	for _, g := range m.Groups {
		n = min(n, g.Limit)
	}
	return n
}

// Free is the least of available memory and of each group's limit less its unreclaimable use.
func (m Memory) Free() int64 {
	n := m.Available
	for _, g := range m.Groups {
		n = min(n, g.Limit-max(0, g.Usage-g.Reclaimable))
	}
	return n
}

// Auto is the budget that `--memory auto` means: Free less max(256 MiB, 5 %). It is zero or
// negative where so little is free that nothing should be taken without asking.
func (m Memory) Auto() int64 {
	n := m.Free()
	return n - max(minHeadroom, n/headroomDivisor)
}

// Process is what the operating system counts for this process, in bytes.
type Process struct {
	RSS        int64 // resident now
	PeakRSS    int64 // highest RSS since start
	Anon       int64 // resident, not backed by a file
	File       int64 // resident, backed by files
	PageTables int64
	Threads    int
}

// IO is what the operating system counts of our reads since start.
type IO struct {
	ReadChars int64 // bytes returned by read calls, cached or not
	ReadCalls int64
	ReadBytes int64 // bytes fetched from drives
}
