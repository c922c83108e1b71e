package main

import (
	"os"
	"strconv"
	"strings"
)

// ticksPerSecond is USER_HZ, which Linux fixes for what it shows in /proc.
const ticksPerSecond = 100

// busySeconds is the processor time that anybody used since the machine started, the time that a
// host took from a virtual machine included.
func busySeconds() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	var ticks int64
	for i, field := range strings.Fields(first) {
		// cpu user nice system idle iowait irq softirq steal; guest time is in user already.
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		n, _ := strconv.ParseInt(field, 10, 64)
		ticks += n
	}
	return float64(ticks) / ticksPerSecond
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
