package spillway

import (
	"errors"
	"io"

	"github.com/spillway/spillway/internal/policy"
	"github.com/spillway/spillway/internal/trace"
)

// ErrNoExperts is what Start answers to options that are about experts when the model has none.
var ErrNoExperts = errors.New("the model has no experts: there is nothing to trace")

// tracer writes which experts a model's steps choose.
type tracer struct {
	out    io.WriteCloser
	writer *trace.Writer
}

// newTracer writes the head of a trace.
func (c *Checkpoint) newTracer(out io.WriteCloser) (*tracer, error) {
	l := c.Layout()
	if len(l.Experts) == 0 {
		return nil, ErrNoExperts
	}
	h := trace.Header{
		Model:  trace.Model{Name: c.Name(), Family: l.Family},
		Layers: len(l.Experts), Experts: l.Experts[0].Count(), Used: l.Experts[0].Used,
	}
	for i := range l.Experts {
		h.ExpertBytes = append(h.ExpertBytes, l.Experts[i].Bytes())
	}
	w, err := trace.NewWriter(out, h)
	return &tracer{out, w}, err
}

// visit is nn.Env.Routing. An error is kept by the writer until close.
func (t *tracer) visit(layer int, v policy.Visit, ids []int32) {
	if layer == 0 {
		_ = t.writer.Step()
	}
	_ = t.writer.Visit(layer, int(v.Decode), ids)
}

func (t *tracer) close() error {
	if t == nil {
		return nil
	}
	return errors.Join(t.writer.Close(), t.out.Close())
}
