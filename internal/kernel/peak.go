package kernel

import (
	"sync/atomic"
	"time"
)

// peakLoop runs multiply-add instructions alone, on registers: what no product can exceed.
type peakLoop struct {
	run        func(turns int)
	operations float64 // of a turn; 0 if there is no loop
}

// peakOps are an instruction set's loops: on binary32, and on 16-bit integers with sums of 32 bits.
type peakOps struct{ float, integer peakLoop }

const (
	peakTurns   = 2000 // between looks at the clock, some microseconds
	peakWindow  = 5 * time.Millisecond
	peakWindows = 5
)

// Peak measures, in a fortieth of a second each, how many operations a second (a multiply-add is two) the pool's threads
// do if they do nothing but multiply and add: on binary32 (VFMADD231PS, FMLA) and on 16-bit integers (VPMADDWD and
// VPADDD, VPDPWSSD, SMLAL), as the instruction set in use has them. It is 0 for the pure Go loops.
func Peak(p *Pool) (float, integer float64) {
	return active.peak.float.measure(p), active.peak.integer.measure(p)
}

// measure takes the best of some windows: other processes can only slow it down.
func (l peakLoop) measure(p *Pool) (best float64) {
	if l.operations == 0 {
		return 0
	}
	for range peakWindows {
		var turns atomic.Int64
		start := time.Now()
		p.Run(p.Threads(), func(_, _ int) {
			for time.Since(start) < peakWindow {
				l.run(peakTurns)
				turns.Add(peakTurns)
			}
		})
		best = max(best, float64(turns.Load())*l.operations/time.Since(start).Seconds())
	}
	return best
}
