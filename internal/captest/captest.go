// Package captest runs a command in a memory control group of its own and reports what the kernel
// counted: the peak with page cache and page tables, and whether the command was killed. Swap is
// off in the group, and named files are dropped from the page cache first, so that every page
// which the command causes is charged to it. Tests use it to check that a budget is hard.
//
// It needs Linux, a memory controller (cgroup v1 or v2) and the right to make a group; Available
// says what is missing.
package captest

import (
	"context"
	"io"
	"time"
)

// Run describes one run of a command in a fresh group.
type Run struct {
	// Limit is the group's limit in bytes; 0 only counts. The kernel rounds it down to whole pages.
	Limit int64
	// Cold names the files that leave the page cache before the command starts.
	Cold []string

	Path  string // the program
	Args  []string
	Env   []string // KEY=VALUE, added to our own environment
	Dir   string
	Stdin io.Reader
	// Started is called with the command's process id; nil for nobody.
	Started func(pid int)
}

// Result is what came of a Run.
type Result struct {
	Exit     int  // exit code, -1 when a signal ended the command
	Killed   bool // SIGKILL ended it, or the kernel killed something in the group
	OOMKills int64
	Peak     int64 // the group's largest count in bytes (v1 memory.max_usage_in_bytes, v2 memory.peak)
	// Sockets is the most memory that TCP took on the whole machine while the command ran, beyond what it took before, in
	// bytes: v1 does not count it in Peak.
	Sockets int64
	Stdout  []byte
	Stderr  []byte
	Elapsed time.Duration
	Faults  int64 // pages of the program's own that had to be read (major faults)
}

// Available says why no group can be made here, or nil.
func Available() error { return available() }

// Do runs the command and removes the group. An error means that the harness failed; a command
// that fails or is killed is a Result. When ctx ends, the command is killed and ctx's error
// returned with what is known.
func (r Run) Do(ctx context.Context) (Result, error) { return r.do(ctx) }

// Evict writes the files' dirty pages and drops their clean ones from the page cache; it is an
// error when pages stay (another process may have the file mapped).
func Evict(paths ...string) error { return evict(paths) }

// Cached returns how many bytes of the file are in the page cache.
func Cached(path string) (int64, error) { return cached(path) }
