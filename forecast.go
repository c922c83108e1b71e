package spillway

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/quant"
)

const (
	productTime = 40 * time.Millisecond // for one kind of products
	chunkRows   = 64                    // of products for prompts
	layerStarts = 3                     // of the threads in a layer, apart from those for products: attention, norms
	// With one row products take that much longer in a pass than one after the other here: a third of the buffer may be in a cache,
	// and each product of a pass begins with others' weights around. Measured: 1.16 to 1.30.
	inPass = 1.2
)

// Costs measures how long the model's products take with weights that come from memory, as a forward pass makes
// them: for one row, and for many. It is for times when no model runs, and takes no more memory than Measure.
func (c *Checkpoint) Costs(p *plan.Plan, exact bool) (costs plan.Costs, err error) {
	buf, err := c.spare(p)
	if err != nil || buf == nil {
		return plan.Costs{}, err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	pool := kernel.NewPool(c.rt.threads)
	defer pool.Close()
	t := productTimer{pool: pool, memory: buf.Bytes(), exact: exact, threads: c.rt.threads, known: map[string]float64{}}
	for i := 0; i < len(t.memory); i += 4096 {
		t.memory[i] = 1 // else the system backs it with one page of zeros
	}
	rows := min(p.Chunk, chunkRows)
	l := c.Layout()
	for i := range l.Bundles {
		b := &l.Bundles[i]
		for _, g := range together(b) {
			one, many := t.product(g, 1), t.product(g, rows)/float64(rows)
			switch b.Kind {
			case layout.Embedding:
			case layout.Head:
				costs.HeadRow += one
			default:
				costs.Row, costs.ChunkRow = costs.Row+one, costs.ChunkRow+many
			}
		}
	}
	costs.Row += float64(l.Layers) * layerStarts * t.start()
	if len(l.Experts) > 0 {
		costs.Expert, costs.ExpertRow = t.expert(&l.Experts[0], p.Chunk)
	}
	costs.Row, costs.HeadRow, costs.Expert = inPass*costs.Row, inPass*costs.HeadRow, inPass*costs.Expert
	return costs, nil
}

// spare is memory for measurements: half of what the plan gave to the model, up to measureBuffer; nil if that is too
// little.
func (c *Checkpoint) spare(p *plan.Plan) (*mem.Buffer, error) {
	if len(c.cat.Files) == 0 {
		return nil, fmt.Errorf("the checkpoint is %w", ErrClosed)
	}
	free := -p.Pools[budget.Runtime]
	for _, pool := range p.Pools {
		free += pool
	}
	n := int(min(free/2, measureBuffer)) &^ (measureLeast - 1)
	if n < measureLeast {
		return nil, nil
	}
	return mem.New(c.rt.ledger, budget.Staging, n, "measurements")
}

// shape is a matrix of some type.
type shape struct {
	typ        quant.Type
	rows, cols int
}

// together are the bundle's matrices, those with the same inputs in one group.
func together(b *layout.Bundle) (groups [][]shape) {
	for i, m := range b.Matrices {
		x := shape{m.Type, m.Rows, m.Cols}
		if i > 0 && b.Matrices[i-1].Cols == m.Cols {
			groups[len(groups)-1] = append(groups[len(groups)-1], x)
			continue
		}
		groups = append(groups, []shape{x})
	}
	return groups
}

// productTimer times products of zeros.
type productTimer struct {
	pool    *kernel.Pool
	memory  []byte
	exact   bool
	threads int
	known   map[string]float64 // seconds
}

// start is how long the threads take to begin and end together.
func (t *productTimer) start() float64 {
	const turns = 200
	begin := time.Now()
	for range turns {
		t.pool.Run(t.threads, func(int, int) {})
	}
	return time.Since(begin).Seconds() / turns
}

// expert is what one expert takes with one row, and a row of those that an expert gets of a long chunk.
func (t *productTimer) expert(l *layout.ExpertLayer, chunk int) (one, row float64) {
	rows := max(min(chunk*l.Used/l.Count(), chunkRows), 1)
	for i := range l.Stacks {
		s := &l.Stacks[i]
		g := []shape{{s.Type, s.Rows, s.Cols}}
		one += t.product(g, 1)
		row += t.product(g, rows) / float64(rows)
	}
	return one, row
}

// product is the seconds that products of some matrices with rows of inputs take. Matrices that do not fit are cut,
// and the time is scaled.
func (t *productTimer) product(g []shape, rows int) float64 {
	key := fmt.Sprint(g, rows)
	if s, ok := t.known[key]; ok {
		return s
	}
	s := t.measure(g, rows)
	t.known[key] = s
	return s
}

func (t *productTimer) measure(g []shape, rows int) float64 {
	rest, cols := t.memory, g[0].cols
	take := func(n int) []byte {
		n = mem.Round(n)
		if n > len(rest) {
			return nil
		}
		part := rest[:n]
		rest = rest[n:]
		return part
	}
	integer := slices.ContainsFunc(g, func(x shape) bool { return kernel.Integer(x.typ, t.exact) })
	acts, scratch := take(kernel.ActsBytes(rows, cols, integer)), take(kernel.ScratchBytes(t.threads, cols))
	outputs, bytes := 0, 0
	for _, x := range g {
		if !kernel.Supported(x.typ) && !t.exact {
			return 0
		}
		outputs, bytes = outputs+x.rows, bytes+x.rows*x.typ.RowBytes(cols)
	}
	share := min(float64(len(rest))/2/float64(bytes+outputs*rows*4+len(g)*mem.Round(1)), 1)
	out := take(int(share*float64(outputs*rows*4)) + mem.Round(1))
	if acts == nil || scratch == nil || out == nil {
		return 0
	}
	a := kernel.MakeActs(acts, rows, cols, integer)
	return t.run(g, share, rest, mem.AsFloat32s(out), &a, make([]float32, cols), scratch)
}

// run is the median of some runs, each with weights from another place of memory, so that no cache has them.
func (t *productTimer) run(g []shape, share float64, weights []byte, out []float32, a *kernel.Acts, input []float32, scratch []byte) float64 {
	all := make([]kernel.Output, len(g))
	at, done := 0, 0
	var times []float64
	for begin := time.Now(); len(times) < 3 || time.Since(begin) < productTime; {
		done = 0
		o := 0
		for i, x := range g {
			n := min(int(share*float64(x.rows)), x.rows)
			size := n * x.typ.RowBytes(x.cols)
			if size == 0 || size > len(weights) || o+n*a.Rows > len(out) {
				return 0
			}
			if at+size > len(weights) {
				at = 0
			}
			all[i] = kernel.Output{W: kernel.Weights{Type: x.typ, Rows: n, Cols: x.cols, Data: weights[at : at+size]}, Out: out[o:], Stride: n}
			at, o, done = at+mem.Round(size), o+n*a.Rows, done+n
		}
		start := time.Now()
		for r := range a.Rows {
			a.SetRow(r, input)
		}
		kernel.MatMulAll(t.pool, scratch, a, t.exact, all)
		times = append(times, time.Since(start).Seconds())
	}
	total := 0
	for _, x := range g {
		total += x.rows
	}
	slices.Sort(times)
	return times[len(times)/2] * float64(total) / float64(done)
}
