package captest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"time"
)

// watchSockets looks at the memory of TCP until the function that it returns is called, which tells by how much it
// grew at most. A v2 group counts its sockets itself.
func watchSockets(counted bool) (grown func() int64) {
	if counted {
		return func() int64 { return 0 }
	}
	stop, most := make(chan struct{}), make(chan int64)
	before := tcpBytes()
	go func() {
		peak := before
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				peak = max(peak, tcpBytes())
			case <-stop:
				most <- peak
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-most - before
	}
}

// tcpBytes is what the kernel says that TCP's buffers take; 0 if it does not tell.
func tcpBytes() int64 {
	text, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var inuse, orphan, tw, alloc, mem int64
		if n, _ := fmt.Sscanf(lines.Text(), "TCP: inuse %d orphan %d tw %d alloc %d mem %d", &inuse, &orphan, &tw, &alloc, &mem); n == 5 {
			return mem * int64(os.Getpagesize())
		}
	}
	return 0
}
