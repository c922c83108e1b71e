package machine

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// Times that ReadBandwidth measures, how long each takes, and the piece of work between looks at the clock.
const (
	bandwidthTimes = 4
	bandwidthTime  = 50 * time.Millisecond
	bandwidthStep  = 1 << 20
)

// ReadBandwidth measures how fast threads read buf, each its own part again and again, in bytes per
// second: the best of some times, since other programs only take from it. It takes about 0.2 s. The buffer should be several times the processor's caches, and
// written once before, else the system backs it with one page of zeros.
func ReadBandwidth(buf []byte, threads int) float64 {
	threads = max(1, threads)
	part := len(buf) / threads
	if part < 256 {
		return 0
	}
	var best float64
	for range bandwidthTimes {
		best = max(best, readOnce(buf, part, threads))
	}
	return best
}

func readOnce(buf []byte, part, threads int) float64 {
	var (
		wg    sync.WaitGroup
		total atomic.Int64
		sink  atomic.Uint64 // keeps the sums, and so the reads, from being optimized away
	)
	start := time.Now()
	for i := range threads {
		mine := buf[i*part:][:part]
		wg.Go(func() {
			for at := 0; time.Since(start) < bandwidthTime; at += bandwidthStep {
				if at >= len(mine) {
					at = 0
				}
				piece := mine[at:min(at+bandwidthStep, len(mine))]
				sink.Add(sum(piece))
				total.Add(int64(len(piece)))
			}
		})
	}
	wg.Wait()
	return float64(total.Load()) / time.Since(start).Seconds()
}

// sum adds words of every cache line, in four streams side by side, as one alone does not keep the
// memory busy. A rest below 256 bytes is left out.
func sum(b []byte) (s uint64) {
	quarter := len(b) / 4
	b0, b1, b2, b3 := b[:quarter], b[quarter:][:quarter], b[2*quarter:][:quarter], b[3*quarter:]
	for len(b0) >= 64 && len(b1) >= 64 && len(b2) >= 64 && len(b3) >= 64 {
		s += words(b0) + words(b1) + words(b2) + words(b3)
		b0, b1, b2, b3 = b0[64:], b1[64:], b2[64:], b3[64:]
	}
	return s
}

func words(line []byte) uint64 {
	return binary.NativeEndian.Uint64(line[0:8]) + binary.NativeEndian.Uint64(line[32:40])
}
