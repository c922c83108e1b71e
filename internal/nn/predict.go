package nn

import (
	"slices"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/pager"
)

// predict tells the pager which experts the blocks to come will probably need: those that their routers would choose if nothing were
// added to the stream before. It changes no value.
func (r *run) predict() {
	if r.rows > fewRows {
		return
	}
	for ahead := 1; ahead <= pager.GuessLayers && r.at+ahead < len(r.m.blocks); ahead++ {
		b := &r.m.blocks[r.at+ahead]
		f, ok := b.ffn.(*moe)
		if !ok || f.router.m.Order != nil || !r.env.Pager.Predicts(ahead) || !r.predictBlock(b, f) {
			return
		}
	}
}

// predictBlock is predict for one block; it reports whether the drive would have time for what another one needs.
func (r *run) predictBlock(b *block, f *moe) (more bool) {
	data := r.env.Pager.Peek(f.router.m)
	if data == nil {
		return false
	}
	mark, inputs := r.env.Arena.Mark(), len(r.inputs)
	defer func() { r.env.Arena.Reset(mark); r.inputs = r.inputs[:inputs] }()
	m, d := f.router.m, &f.desc
	h := r.floats(r.rows * f.hidden)
	r.norm(b.ffnNorm, h, r.stream, f.hidden)
	in := r.acts(h, f.hidden, m)
	scores := r.floats(r.rows * d.Experts)
	w := kernel.Weights{Type: m.Type, Rows: m.Rows, Cols: m.Cols, Data: data}
	kernel.MatMul(r.env.Pool, r.kernScratch, w, in, scores, m.Rows, r.env.Exact)
	r.correct(f.router, in, scores)
	ids := r.ints(r.rows * d.Used)
	for row := range r.rows {
		kernel.TopK(ids[row*d.Used:][:d.Used], scores[row*d.Experts:][:d.Experts])
	}
	r.guessed = r.guessed[:0]
	for rank := range d.Used { // of all rows, the best ones first
		for row := range r.rows {
			if e := ids[row*d.Used+rank]; !slices.Contains(r.guessed, e) {
				r.guessed = append(r.guessed, e)
			}
		}
	}
	return r.sweep.Predict(f.index, r.guessed)
}

// predictScratch adds what predict takes from the arena.
func (f *moe) predictScratch(s *sizes, n int) {
	s.floats(n * f.hidden)
	s.acts(n, f.hidden, f.router.m)
	s.floats(n * f.desc.Experts)
	s.floats(n * f.desc.Used)
}
