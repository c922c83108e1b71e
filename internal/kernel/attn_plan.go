package kernel

import (
	"sort"
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
	task      int       // number of its first task
}

func (u *attnUnit) tasks() int {
	if u.split {
		return u.seg.KV.KVHeads * u.spans
	}
	return u.seg.KV.KVHeads
}

// attnPlan collects units whose partials fit the scratch space together.
type attnPlan struct {
	attn    Attention
	shape   AttentionShape
	waves   [][]attnUnit
	workers []*attnWorker
	space   []float32 // for partials, of each wave anew
	free    []float32
}

func newAttnPlan(a Attention, s AttentionShape, threads int, scratch []byte) *attnPlan {
	f := floatsOf(scratch)
	p := &attnPlan{attn: a, shape: s, waves: make([][]attnUnit, 1)}
	for range threads {
		n := s.workerFloats()
		p.workers = append(p.workers, newAttnWorker(a, s, f[:n:n]))
		f = f[n:]
	}
	p.space, p.free = f, f
	return p
}

// floatsOf views b as float32 values, from the first address that is a multiple of 64.
func floatsOf(b []byte) []float32 {
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63
	b = b[skip:]
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// add cuts a segment into units.
func (p *attnPlan) add(seg *Segment) {
	step := min(p.shape.groupRows(), max(1, seg.Rows))
	for row := 0; row < seg.Rows; {
		u := p.unit(seg, row, min(step, seg.Rows-row))
		if seg.Rows <= splitRows && u.spans > 1 {
			p.split(&u)
		}
		last := len(p.waves) - 1
		p.waves[last] = append(p.waves[last], u)
		row += u.rows
	}
}

func (p *attnPlan) unit(seg *Segment, row, rows int) attnUnit {
	lo, hi := p.attn.visible(seg, seg.First+row)
	for i := row + 1; i < row+rows; i++ {
		l, h := p.attn.visible(seg, seg.First+i)
		lo, hi = min(lo, l), max(hi, h)
	}
	first := lo / attnSpan
	return attnUnit{seg: seg, row: row, rows: rows, firstSpan: first, spans: (hi+attnSpan-1)/attnSpan - first}
}

// split gives u its partials: in a new wave if this one's space is used up, and with fewer rows if
// even the whole space is too small for all of them.
func (p *attnPlan) split(u *attnUnit) {
	perRow := u.spans * p.shape.Heads * p.shape.partialFloats()
	if len(p.free) < perRow*u.rows && len(p.free) < len(p.space) {
		p.waves = append(p.waves, nil)
		p.free = p.space
	}
	if rows := min(u.rows, len(p.free)/perRow); rows < u.rows {
		*u = p.unit(u.seg, u.row, max(1, rows))
		perRow = u.spans * p.shape.Heads * p.shape.partialFloats()
	}
	n := perRow * u.rows
	u.split, u.partial, p.free = true, p.free[:n:n], p.free[n:]
}

func (p *attnPlan) run(pool *Pool) {
	for _, units := range p.waves {
		tasks := 0
		for i := range units {
			units[i].task = tasks
			tasks += units[i].tasks()
		}
		pool.Run(tasks, func(worker, task int) {
			// The last units see the most keys: they come first, so that no thread ends up waiting.
			task = tasks - 1 - task
			i := sort.Search(len(units), func(i int) bool { return units[i].task > task }) - 1
			p.workers[worker].do(&units[i], task-units[i].task)
		})
		p.foldPartials(pool, units)
	}
}

// foldPartials joins the spans of every split unit, one task for a key-value head.
func (p *attnPlan) foldPartials(pool *Pool, units []attnUnit) {
	var split []*attnUnit
	for i := range units {
		if units[i].split {
			split = append(split, &units[i])
		}
	}
	heads := p.shape.KVHeads
	pool.Run(len(split)*heads, func(worker, task int) {
		p.workers[worker].fold(split[task/heads], task%heads)
	})
}
