package kernel

// Output is a matrix of MatMulAll and where its products go, as MatMul has them.
type Output struct {
	A      *Acts // nil: those of the others
	W      Weights
	Out    []float32
	Stride int
}

// MatMulAll multiplies several matrices with a, or with activations of their own, as MatMul does with each, in one
// go: small ones are not worth a start of the threads each.
func MatMulAll(p *Pool, scratch []byte, a *Acts, exact bool, all []Output) {
	g := productGroups.get()
	for i := range all {
		x := &all[i]
		in := a
		if x.A != nil {
			in = x.A
		}
		if x.W.Rows == 0 || in.Rows == 0 {
			continue
		}
		j := begin(p, scratch, x.W, in, x.Out, x.Stride, exact)
		g.jobs = append(g.jobs, j)
		g.total += j.tasks()
	}
	p.Run(g.total, g.run)
	for i, j := range g.jobs {
		j.end()
		g.jobs[i] = nil
	}
	g.jobs, g.total = g.jobs[:0], 0
	productGroups.put(g)
}

type productGroup struct {
	jobs  []*product
	total int
	run   func(worker, task int)
}

var productGroups = kept[productGroup]{make: func() *productGroup {
	g := new(productGroup)
	g.run = g.do
	return g
}}

func (g *productGroup) do(worker, task int) {
	for _, j := range g.jobs {
		n := j.tasks()
		if task < n {
			j.task(worker, task)
			return
		}
		task -= n
	}
}
