package nn

import (
	"fmt"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/pager"
)

// MoE describes a mixture of experts (Shazeer et al. 2017): a router chooses Used of Experts for each row, whose
// outputs are added with weights. Roles: ffn.router with an optional bias; ffn.experts.gate, ffn.experts.up and
// ffn.experts.down, or ffn.experts.gate_up with their rows in turn, with optional biases; ffn.shared.gate,
// ffn.shared.up, ffn.shared.down and ffn.shared_gate for a shared expert.
type MoE struct {
	Experts, Used int
	Width         int // of each expert
	Weights       Weighting
	Shared        *SharedExpert // nil for none
	Clamp         *Clamp        // nil: SiLU(gate)·up
}

// Weighting says how a row's router scores become the weights of the experts with the highest scores.
type Weighting uint8

// Ways of weighting.
const (
	SoftmaxAll    Weighting = iota // softmax over all experts' scores
	SoftmaxUnit                    // the same, then the weights of the chosen ones are divided by their sum
	SoftmaxChosen                  // softmax over the chosen ones' scores
)

// SharedExpert describes an expert that every row uses.
type SharedExpert struct {
	Width int
	Gated bool // its output is multiplied with sigmoid(ffn.shared_gate · x)
}

// Clamp describes the activation (up + 1) · gate·sigmoid(Alpha·gate) with gate at most Limit and up within
// ±Limit.
type Clamp struct{ Alpha, Limit float32 }

type moe struct {
	desc       MoE
	layer      int // of the model
	index      int // among the layers with experts
	hidden     int
	router     linear
	shared     *gatedMLP
	sharedGate linear
	stacks     []*layout.Matrix // one of each stack, for its type and shape; not a matrix of the model
	entry      []*layout.Matrix // those whose input is the block's
	biases     []*layout.Vector // by stack, all experts in a row; nil for none
}

func (d MoE) bind(b *binder, hidden int) (feedForward, error) {
	if d.Used < 1 || d.Used > d.Experts {
		return nil, fmt.Errorf("layer %d: %d experts cannot be chosen of %d", b.layer, d.Used, d.Experts)
	}
	f := &moe{desc: d, layer: b.layer, index: len(b.model.Experts), hidden: hidden}
	var err error
	if f.router, err = b.linear("ffn.router", d.Experts, hidden); err != nil {
		return nil, err
	}
	if d.Shared != nil {
		if err := f.bindShared(b); err != nil {
			return nil, err
		}
	}
	err = f.bindExperts(b)
	f.entry = append(f.entry, f.router.m)
	if err == nil {
		f.entry = append(f.entry, f.stacks[:f.down()]...)
	}
	if f.shared != nil {
		f.entry = append(f.entry, f.shared.gate.m, f.shared.up.m)
	}
	return f, err
}

func (f *moe) bindShared(b *binder) (err error) {
	if f.desc.Shared.Gated {
		if f.sharedGate, err = b.linear("ffn.shared_gate", 1, f.hidden); err != nil {
			return err
		}
	}
	f.shared, err = bindMLP(b, "ffn.shared", f.hidden, f.desc.Shared.Width)
	return err
}

func (f *moe) bindExperts(b *binder) error {
	d := f.desc
	layer := layout.ExpertLayer{Layer: b.layer, Used: d.Used}
	merged, err := f.bindStack(b, &layer, "ffn.experts.gate_up", 2*d.Width, f.hidden)
	if err == nil && !merged {
		err = f.needStack(b, &layer, "ffn.experts.gate", d.Width, f.hidden)
		if err == nil {
			err = f.needStack(b, &layer, "ffn.experts.up", d.Width, f.hidden)
		}
	}
	if err == nil {
		err = f.needStack(b, &layer, "ffn.experts.down", f.hidden, d.Width)
	}
	b.model.Experts = append(b.model.Experts, layer)
	b.model.Parameters += int64(d.Experts) * 3 * int64(d.Width) * int64(f.hidden)
	b.model.FlopsPerToken += 2 * int64(d.Used) * 3 * int64(d.Width) * int64(f.hidden)
	b.model.MaxCols = max(b.model.MaxCols, d.Width)
	b.model.MaxRows = max(b.model.MaxRows, 2*d.Width)
	return err
}

func (f *moe) needStack(b *binder, l *layout.ExpertLayer, role string, rows, cols int) error {
	ok, err := f.bindStack(b, l, role, rows, cols)
	if err == nil && !ok {
		err = &MissingError{Weight: b.where(role)}
	}
	return err
}

// bindStack adds a stack and its bias; ok is false if the checkpoint has none.
func (f *moe) bindStack(b *binder, l *layout.ExpertLayer, role string, rows, cols int) (ok bool, err error) {
	s, ok, err := b.src.Stack(b.layer, role, f.desc.Experts, rows, cols)
	if err != nil || !ok {
		return false, err
	}
	bias, err := b.optional(role+".bias", f.desc.Experts*rows)
	l.Stacks = append(l.Stacks, *s)
	f.stacks = append(f.stacks, &layout.Matrix{Name: s.Name, Type: s.Type, Rows: rows, Cols: cols})
	f.biases = append(f.biases, bias)
	return true, err
}

// down is the number of the last stack; there is one before it if gate and up are merged.
func (f *moe) down() int { return len(f.stacks) - 1 }

// scratch adds what forward takes from the arena for n rows.
func (f *moe) scratch(s *sizes, n int) {
	d, all := f.desc, s.mark()
	s.acts(n, f.hidden, f.entry...)
	s.floats(n * d.Experts)
	s.floats(n * d.Used)
	s.floats(n * d.Used)
	s.floats(n * d.Used) // places
	s.floats(n * d.Used) // taps
	s.floats(2 * d.Experts)
	if f.shared != nil {
		s.floats(n)
		s.floats(n * f.hidden)
		f.shared.scratch(s, n)
	}
	s.floats(n * d.Used * f.hidden)
	each := s.mark()
	s.floats(n * f.hidden)
	s.acts(n, f.hidden, f.stacks[:f.down()]...)
	s.floats(4 * n * d.Width)
	s.acts(n, d.Width, f.stacks[f.down()])
	s.floats(n * f.hidden)
	s.reset(each)
	f.predictScratch(s, n)
	s.reset(each)
	for range d.Used { // see single
		s.floats(4 * d.Width)
		s.acts(1, d.Width, f.stacks[f.down()])
	}
	s.reset(all)
}

// forward writes the block's output for all rows of the batch to dst; x is the normed input.
func (f *moe) forward(r *run, dst, x []float32) error {
	in := r.acts(x, f.hidden, f.entry...)
	t, err := f.route(r, in)
	if err != nil {
		return err
	}
	if err := r.sweep.Ask(f.index, t.visit); err != nil {
		return err
	}
	r.predict()
	gate, shared, err := f.common(r, in, x)
	if err != nil {
		return err
	}
	y := r.floats(r.rows * f.desc.Used * f.hidden)
	for some, err := range r.sweep.Experts(f.most(r)) {
		if err == nil {
			err = f.experts(r, &t, some, in, x, y)
		}
		if err != nil {
			return err
		}
	}
	r.tasks.mixing = mixing{dst, y, t.weights, gate, shared, f.desc.Used, f.hidden}
	r.each(f.desc.Used*f.hidden, &r.tasks.mixing)
	return nil
}

// common is the shared expert's output and the gate that it is multiplied with; nil for none.
func (f *moe) common(r *run, in *kernel.Acts, x []float32) (gate, out []float32, err error) {
	if f.shared == nil {
		return nil, nil, nil
	}
	if f.desc.Shared.Gated {
		gate = r.floats(r.rows)
		if err := r.linear(f.sharedGate, in, gate); err != nil {
			return nil, nil, err
		}
		for i, g := range gate {
			gate[i] = kernel.Sigmoid(g)
		}
	}
	out = r.floats(r.rows * f.hidden)
	mark := r.env.Arena.Mark()
	defer r.env.Arena.Reset(mark)
	return gate, out, f.shared.forward(r, out, x)
}

// most is how many experts are computed at once if they are there: all of a single row's.
func (f *moe) most(r *run) int {
	if r.rows == 1 {
		return f.desc.Used
	}
	return 1
}

// experts computes some experts.
func (f *moe) experts(r *run, t *routing, some []pager.Expert, in *kernel.Acts, x, y []float32) error {
	if r.rows == 1 && some[0].Stays() {
		return f.single(r, t, some, in, y)
	}
	for _, e := range some {
		if e.Err != nil {
			t.lose(r, y, e.Demand, f.hidden, e.Err)
		} else if err := f.expert(r, t, e, in, x, y); err != nil {
			return err
		}
	}
	return nil
}

// expert computes one expert for the rows that chose it, and writes what it gives to y, rows × Used × hidden.
func (f *moe) expert(r *run, t *routing, e pager.Expert, in *kernel.Acts, x, y []float32) error {
	mark, inputs := r.env.Arena.Mark(), len(r.inputs)
	defer func() { r.env.Arena.Reset(mark); r.inputs = r.inputs[:inputs] }()
	d := f.desc
	places := t.places(e.Demand)
	n, id := len(places), int(t.visit.Demands[e.Demand].Expert)
	if n < r.rows { // all rows come in their order
		some := r.floats(n * f.hidden)
		for i, at := range places {
			copy(some[i*f.hidden:][:f.hidden], x[int(at)/d.Used*f.hidden:])
		}
		in = r.actsOf(n, some, f.hidden, f.stacks[:f.down()]...)
	}
	h, err := f.enter(r, e, id, in, n)
	if err != nil {
		return err
	}
	out := r.floats(n * f.hidden)
	mid := r.actsOf(n, h, d.Width, f.stacks[f.down()])
	if err := f.products(r, e, id, f.down(), mid, out); err != nil {
		return err
	}
	for i, at := range places {
		copy(y[int(at)*f.hidden:][:f.hidden], out[i*f.hidden:])
	}
	return nil
}

// enter is the activation of gate and up, n × Width.
func (f *moe) enter(r *run, e pager.Expert, id int, in *kernel.Acts, n int) ([]float32, error) {
	w := f.desc.Width
	both := r.floats(4 * n * w)
	gate, up := both[:n*w], both[n*w:][:n*w]
	if f.down() == 1 {
		merged := both[2*n*w:]
		if err := f.products(r, e, id, 0, in, merged); err != nil {
			return nil, err
		}
		kernel.Alternate(gate, up, merged)
	} else if err := f.products(r, e, id, 0, in, gate, up); err != nil {
		return nil, err
	}
	r.tasks.activating = activating{f, gate, up}
	r.eachOf(n, w, &r.tasks.activating)
	return gate, nil
}

// activate replaces gate by the activation of gate and up.
func (f *moe) activate(gate, up []float32) {
	if c := f.desc.Clamp; c != nil {
		kernel.ClampedSwiGLU(gate, gate, up, c.Alpha, c.Limit)
		return
	}
	kernel.SiLUMul(gate, gate, up)
}

// products writes the products of in with stacks of an expert, from the given one on, to out, n × rows each, with
// their biases.
func (f *moe) products(r *run, e pager.Expert, id, first int, in *kernel.Acts, out ...[]float32) error {
	r.together = r.together[:0]
	for i, o := range out {
		m := f.stacks[first+i]
		for tile, err := range e.Tiles(first + i) {
			if err != nil {
				return err
			}
			w := kernel.Weights{Type: m.Type, Rows: tile.Rows, Cols: m.Cols, Data: tile.Bytes()}
			if e.Stays() {
				r.together = append(r.together, kernel.Output{W: w, Out: o[tile.Row0:], Stride: m.Rows})
				continue
			}
			kernel.MatMul(r.env.Pool, r.kernScratch, w, in, o[tile.Row0:], m.Rows, r.env.Exact)
		}
	}
	if in.Rows <= fewRows {
		kernel.MatMulAll(r.env.Pool, r.kernScratch, in, r.env.Exact, r.together)
	} else {
		for _, o := range r.together {
			kernel.MatMul(r.env.Pool, r.kernScratch, o.W, in, o.Out, o.Stride, r.env.Exact)
		}
	}
	for i, o := range out {
		for row := range in.Rows {
			f.correct(r, first+i, id, o[row*f.stacks[first+i].Rows:])
		}
	}
	return nil
}

// correct adds an expert's bias to a row of products with one of its stacks.
func (f *moe) correct(r *run, stack, id int, out []float32) {
	if v := f.biases[stack]; v != nil {
		rows := f.stacks[stack].Rows
		kernel.Add(out[:rows], r.env.Pager.Vector(v)[id*rows:][:rows])
	}
}
