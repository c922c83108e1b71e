package grammar

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what the process has used: other programs do not count.
func processorTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
