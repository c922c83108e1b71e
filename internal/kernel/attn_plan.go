package kernel

import (
	"slices"
	"sort"
	"sync/atomic"
	"unsafe"
)

// attnUnit is some rows of a segment. Its tasks are one for each key-value head; if it is split, one
// for each key-value head and span.
type attnUnit struct {
	seg       *Segment
	row, rows int
	firstSpan int
	spans     int
	split     bool
	partial   []float32 // of a split unit: [KVHeads][spans][rows × group] partials
	left      int       // of a split unit: number of its first counter of spans to come, one for each head
	task      int       // number of its first task
}

func (u *attnUnit) tasks() int {
	if u.split {
		return u.seg.KV.KVHeads * u.spans
	}
	return u.seg.KV.KVHeads
}

// attnPlan collects units and runs them when their partials fill the scratch space, or all are there.
type attnPlan struct {
	attn    Attention
	shape   AttentionShape
	pool    *Pool
	units   []attnUnit
	tasks   int
	work    int // products of the units
	left    []atomic.Int32
	workers []attnWorker
	space   []float32 // for partials, of each run anew
	free    []float32
	run     func(worker, task int)
}

var attnPlans = kept[attnPlan]{make: func() *attnPlan {
	p := new(attnPlan)
	p.run = p.do // once, so that attention allocates nothing
	return p
}}

func (p *attnPlan) start(a Attention, s AttentionShape, pool *Pool, scratch []byte) {
	f := floatsOf(scratch)
	p.attn, p.shape, p.pool = a, s, pool
	p.workers = slices.Grow(p.workers[:0], pool.Threads())[:pool.Threads()]
	for i := range p.workers {
		n := s.workerFloats()
		p.workers[i].start(a, s, f[:n:n])
		f = f[n:]
	}
	p.space, p.free = f, f
}

// floatsOf views b as float32 values, from the first address that is a multiple of 64.
func floatsOf(b []byte) []float32 {
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63
	return floatsAt(b[skip:])
}

// add cuts a segment into units.
func (p *attnPlan) add(seg *Segment) {
	step := p.step(seg.Rows)
	for row := 0; row < seg.Rows; {
		u := p.unit(seg, row, min(step, seg.Rows-row))
		if seg.Rows <= splitRows && u.spans > 1 {
			p.split(&u)
		}
		u.task = p.tasks
		p.tasks += u.tasks()
		p.work += u.rows * u.spans * min(attnSpan, seg.First+seg.Rows) * p.shape.Heads * (p.shape.KDim + p.shape.VDim)
		p.units = append(p.units, u)
		row += u.rows
	}
}

// step is the rows of a unit: as many as share a tile, or fewer so that every thread gets some tasks.
func (p *attnPlan) step(rows int) int {
	step := min(p.shape.groupRows(), max(1, rows))
	group := p.shape.Heads / p.shape.KVHeads
	for step/2*group >= leastLines && (rows+step-1)/step*p.shape.KVHeads < 4*len(p.workers) {
		step /= 2
	}
	return step
}

// leastLines are worth a tile of their own.
const leastLines = 16

func (p *attnPlan) unit(seg *Segment, row, rows int) attnUnit {
	lo, hi := p.attn.visible(seg, seg.First+row)
	for i := row + 1; i < row+rows; i++ {
		l, h := p.attn.visible(seg, seg.First+i)
		lo, hi = min(lo, l), max(hi, h)
	}
	first := lo / attnSpan
	return attnUnit{seg: seg, row: row, rows: rows, firstSpan: first, spans: (hi+attnSpan-1)/attnSpan - first}
}

// split gives u its partials: after a run if the space is used up, and with fewer rows if even the whole
// space is too small for all of them.
func (p *attnPlan) split(u *attnUnit) {
	perRow := u.spans * p.shape.Heads * p.shape.partialFloats()
	if len(p.free) < perRow*u.rows && len(p.free) < len(p.space) {
		p.flush()
	}
	if rows := min(u.rows, len(p.free)/perRow); rows < u.rows {
		*u = p.unit(u.seg, u.row, max(1, rows))
		perRow = u.spans * p.shape.Heads * p.shape.partialFloats()
	}
	n := perRow * u.rows
	u.split, u.partial, p.free = true, p.free[:n:n], p.free[n:]
	u.left = len(p.left)
	for range p.shape.KVHeads {
		p.left = append(p.left, atomic.Int32{})
		p.left[len(p.left)-1].Store(int32(u.spans))
	}
}

// fanOut is the least work, in products, that is worth waking other threads for.
const fanOut = 500_000

// flush runs what was added.
func (p *attnPlan) flush() {
	if p.work < fanOut {
		for task := range p.tasks {
			p.do(0, task)
		}
	} else {
		p.pool.Run(p.tasks, p.run)
	}
	clear(p.units)
	p.units, p.left, p.free = p.units[:0], p.left[:0], p.space
	p.tasks, p.work = 0, 0
}

// end forgets what belongs to the caller.
func (p *attnPlan) end() {
	for i := range p.workers {
		p.workers[i].end()
	}
	p.attn, p.pool, p.space, p.free = Attention{}, nil, nil, nil
}

func (p *attnPlan) do(worker, task int) {
	// The last units see the most keys: they come first, so that no thread ends up waiting.
	task = p.tasks - 1 - task
	i := sort.Search(len(p.units), func(i int) bool { return p.units[i].task > task }) - 1
	u, w := &p.units[i], &p.workers[worker]
	task -= u.task
	if !u.split {
		w.whole(u, task)
		return
	}
	head, span := task/u.spans, task%u.spans
	w.part(u, head, span)
	// Whoever computes the last span of a head joins them all, in rising order.
	if p.left[u.left+head].Add(-1) == 0 {
		w.fold(u, head)
	}
}
