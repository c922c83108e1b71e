package policy

import (
	"math"
	"slices"
)

// A Log is which experts each visit of a run needed, in memory of its maker: 2 bytes for a demand, 4 for a visit. Layers and
// experts are at most 65535.
type Log struct {
	words []uint16 // of each visit: its layer, how many demands follow, their experts
	full  bool
}

// logVisit is the words of a visit beside its demands.
const logVisit = 2

// NewLog makes a log in words, as far as they go.
func NewLog(words []uint16) *Log { return &Log{words: words[:0:len(words)]} }

// LogBytes is the memory of a log of so many visits with so many demands.
func LogBytes(visits, demands int64) int64 { return 2 * (logVisit*visits + demands) }

// Add appends a visit. What does not fit is left out, as is all that follows.
func (l *Log) Add(layer int, v Visit) {
	if n := len(l.words); l.full || n+logVisit+len(v.Demands) > cap(l.words) {
		l.full = true
		return
	}
	l.words = append(l.words, uint16(layer), uint16(len(v.Demands)))
	for _, d := range v.Demands {
		l.words = append(l.words, uint16(d.Expert))
	}
}

// End is where the log is now, or −1 once something was left out.
func (l *Log) End() int {
	if l.full {
		return -1
	}
	return len(l.words)
}

// Count is how many visits and demands there are from one End to another.
func (l *Log) Count(from, to int) (visits, demands int64) {
	for at := from; at < to; {
		n := int(l.words[at+1])
		visits, demands = visits+1, demands+int64(n)
		at += logVisit + n
	}
	return visits, demands
}

// Steps are those visits. Their experts lie in the log.
func (l *Log) Steps(from, to int) []Step {
	visits, _ := l.Count(from, to)
	steps := make([]Step, 0, visits)
	for at := from; at < to; {
		n := int(l.words[at+1])
		steps = append(steps, Step{int32(l.words[at]), l.words[at+logVisit:][:n:n]})
		at += logVisit + n
	}
	return steps
}

// Sizes are the bytes of an expert by layer: what a read of it needs at least, and the memory that holds it.
type Sizes struct{ Read, Held []int64 }

// LeastBytes is the least that any policy reads for a trace with so much memory, wherever in it experts lie. Warm: it may hold
// anything to begin with; else it is empty. Where sizes differ it is a bound: some policy may have to read more, none reads less.
//
// Every expert costs the smallest size, those of the layers with larger ones the difference on top, and so on. Each of these parts is
// least with the optimum for the layers that have it, alone in the memory, as if each of their experts took as little as the smallest.
func (f *Future) LeastBytes(s Sizes, memory int64, warm bool) (bytes int64) {
	kept, use := make([]farthest, 1), f.newUses()
	below := int64(0)
	for _, size := range slices.Compact(slices.Sorted(slices.Values(s.Read))) {
		set := func(layer int32) int32 {
			if s.Read[layer] < size {
				return leftOut
			}
			return 0
		}
		slots := min(memory/s.smallest(size), int64(f.shape.all()))
		bytes += (size - below) * (f.demands(set) - f.search(kept, use, set, int(slots), warm))
		below = size
	}
	return bytes
}

// smallest is the least memory that holds an expert whose reads need that many bytes or more.
func (s Sizes) smallest(read int64) int64 {
	least := int64(math.MaxInt64)
	for i, n := range s.Read {
		if n >= read {
			least = min(least, s.Held[i])
		}
	}
	return least
}

// demands counts those of the layers that are not left out.
func (f *Future) demands(setOf func(layer int32) int32) (n int64) {
	for _, step := range f.steps {
		if setOf(step.Layer) != leftOut {
			n += int64(len(step.Experts))
		}
	}
	return n
}

// FutureBytes bounds the memory of a Future, its steps and the search for an optimum.
func FutureBytes(s Shape, visits, demands int64) int64 {
	const step, demand, expert = 32, 4, 4 + 4 + 4 + 4 + 8 + 8 // a heap that grows has its old array for a while
	return step*visits + demand*demands + expert*int64(s.all())
}
