package nn

// GatedMLP describes down(act(gate(x)) · up(x)) (SwiGLU, Shazeer 2020). Roles: ffn.gate, ffn.up,
// ffn.down with optional biases.
type GatedMLP struct{ Width int }

type gatedMLP struct {
	hidden, width  int
	gate, up, down linear
}

func (d GatedMLP) bind(b *binder, hidden int) (feedForward, error) {
	return bindMLP(b, "ffn", hidden, d.Width)
}

// bindMLP finds the matrices of roles that begin alike.
func bindMLP(b *binder, role string, hidden, width int) (*gatedMLP, error) {
	f := &gatedMLP{hidden: hidden, width: width}
	var err error
	if f.gate, err = b.linear(role+".gate", width, hidden); err != nil {
		return nil, err
	}
	if f.up, err = b.linear(role+".up", width, hidden); err != nil {
		return nil, err
	}
	f.down, err = b.linear(role+".down", hidden, width)
	return f, err
}

// scratch adds what forward takes from the arena for n rows.
func (f *gatedMLP) scratch(s *sizes, n int) {
	mark := s.mark()
	s.acts(n, f.hidden, f.gate.m, f.up.m)
	s.floats(2 * n * f.width)
	s.acts(n, f.width, f.down.m)
	s.reset(mark)
}

// forward writes the block's output for all rows of the batch to dst; x is the normed input.
func (f *gatedMLP) forward(r *run, dst, x []float32) error {
	in := r.acts(x, f.hidden, f.gate.m, f.up.m)
	gate, up := r.floats(r.rows*f.width), r.floats(r.rows*f.width)
	if err := r.linears(in, output{f.gate, gate}, output{f.up, up}); err != nil {
		return err
	}
	r.tasks.gating = gating{gate, up, f.width}
	r.each(f.width, &r.tasks.gating)
	return r.linear(f.down, r.acts(gate, f.width, f.down.m), dst)
}
