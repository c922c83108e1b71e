package machine

import (
	"fmt"
	"strings"
)

// This file reads the Linux formats; it builds everywhere, so that its tests run everywhere.

func (t tree) memory() (Memory, error) {
	info := t.table("proc/meminfo")
	total, err := info.kilobytes("MemTotal")
	if err != nil {
		return Memory{}, fmt.Errorf("machine: /proc/meminfo: %w", err)
	}
	available, err := info.kilobytes("MemAvailable")
	if err != nil {
		return Memory{}, fmt.Errorf("machine: /proc/meminfo: %w", err)
	}
	return Memory{Total: total, Available: available, Groups: t.groups()}, nil
}

func (t tree) process() (Process, bool) {
	status := t.table("proc/self/status")
	p := Process{Threads: int(status.get("Threads", 0))}
	for key, field := range map[string]*int64{
		"VmRSS": &p.RSS, "VmHWM": &p.PeakRSS, "RssAnon": &p.Anon, "RssFile": &p.File, "VmPTE": &p.PageTables,
	} {
		n, err := status.kilobytes(key)
		if err != nil {
			return Process{}, false
		}
		*field = n
	}
	return p, true
}

func (t tree) io() (IO, bool) {
	stat := t.table("proc/self/io")
	c := IO{ReadChars: stat.get("rchar", -1), ReadCalls: stat.get("syscr", -1), ReadBytes: stat.get("read_bytes", -1)}
	if min(c.ReadChars, c.ReadCalls, c.ReadBytes) < 0 {
		return IO{}, false
	}
	return c, true
}

// cores counts the distinct physical cores of some processors. Where the system does not tell which
// processors share one, each counts.
func (t tree) cores(cpus []int) int {
	distinct := map[string]bool{}
	for _, cpu := range cpus {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d", cpu)
		siblings := strings.TrimSpace(t.text(dir + "/topology/thread_siblings_list"))
		if siblings == "" {
			siblings = dir
		}
		distinct[siblings] = true
	}
	return len(distinct)
}
