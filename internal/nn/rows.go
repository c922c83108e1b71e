package nn

import "github.com/spillway/spillway/internal/kernel"

// fewValues are not worth a start of the threads.
const fewValues = 32 << 10

// rowTask is something to do for every row of a step. Tasks lie in the run, so that a step need not allocate them:
// a closure that the threads are given is on the heap.
type rowTask interface{ row(r *run, i int) }

// tasks has one of each kind, for the one that runs.
type tasks struct {
	norming    norming
	adding     adding
	gating     gating
	placing    placing
	ordering   ordering
	choosing   choosing
	mixing     mixing
	activating activating
}

// each does a task for every row of width values, in parallel when there are many.
func (r *run) each(width int, t rowTask) { r.eachOf(r.rows, width, t) }

// eachOf is each for n rows.
func (r *run) eachOf(n, width int, t rowTask) {
	if n*width < fewValues {
		for i := range n {
			t.row(r, i)
		}
		return
	}
	r.task = t
	r.env.Pool.Run(n, r.runTask)
	r.task = nil
}

func (r *run) doTask(_, i int) { r.task.row(r, i) }

// norming is dst = norm(x).
type norming struct {
	dst, x, weight []float32
	eps            float32
	width          int
}

func (t *norming) row(_ *run, i int) {
	kernel.RMSNorm(t.dst[i*t.width:][:t.width], t.x[i*t.width:][:t.width], t.weight, t.eps)
}

// adding is x += y, where rows of y are stride values apart: 0 for one that is added to all.
type adding struct {
	x, y          []float32
	width, stride int
}

func (t *adding) row(_ *run, i int) {
	kernel.Add(t.x[i*t.width:][:t.width], t.y[i*t.stride:][:t.width])
}

// gating is gate = SiLU(gate) · up.
type gating struct {
	gate, up []float32
	width    int
}

func (t *gating) row(_ *run, i int) {
	g := t.gate[i*t.width:][:t.width]
	kernel.SiLUMul(g, g, t.up[i*t.width:][:t.width])
}

// placing norms and rotates the heads of q and k, and rounds keys and values into the caches.
type placing struct {
	a       *attention
	table   *ropeTable
	q, k, v []float32
}

func (t *placing) row(r *run, i int) {
	k := t.k[i*t.a.kWidth:][:t.a.kWidth]
	t.a.position(r, t.table, i, t.q[i*t.a.qWidth:][:t.a.qWidth], k)
	t.a.store(r, i, k, t.v[i*t.a.kWidth:][:t.a.kWidth])
}

// ordering takes the values of in in the order given, cols of them, to dst.
type ordering struct {
	dst, order []float32
	in         *kernel.Acts
	cols       int
}

func (t *ordering) row(_ *run, i int) {
	dst, src := t.dst[i*t.cols:][:t.cols], t.in.F32[i*t.in.Stride:][:t.cols]
	for k, from := range t.order {
		dst[k] = src[int(from)]
	}
}

// choosing finds the experts of a row by its scores.
type choosing struct {
	d       *MoE
	ids     []int32
	weights []float32
	scores  []float32
}

func (t *choosing) row(_ *run, i int) {
	d := t.d
	d.choose(t.ids[i*d.Used:][:d.Used], t.weights[i*d.Used:][:d.Used], t.scores[i*d.Experts:][:d.Experts])
}

// mixing adds what the experts of a row give, y, with their weights to dst, and what all rows share.
type mixing struct {
	dst, y, weights, gate, shared []float32
	used, hidden                  int
}

func (t *mixing) row(_ *run, i int) {
	out := t.dst[i*t.hidden:][:t.hidden]
	clear(out)
	for k := range t.used {
		kernel.AddScaled(out, t.weights[i*t.used+k], t.y[(i*t.used+k)*t.hidden:][:t.hidden])
	}
	switch {
	case t.gate != nil:
		kernel.AddScaled(out, t.gate[i], t.shared[i*t.hidden:][:t.hidden])
	case t.shared != nil:
		kernel.Add(out, t.shared[i*t.hidden:][:t.hidden])
	}
}

// activating is the activation of an expert's rows.
type activating struct {
	f        *moe
	gate, up []float32
}

func (t *activating) row(_ *run, i int) {
	w := t.f.desc.Width
	t.f.activate(t.gate[i*w:][:w], t.up[i*w:][:w])
}
