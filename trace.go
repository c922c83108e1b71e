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

// routing is who hears which experts are chosen: the trace and the log, if there are any.
func (m *Model) routing() (func(layer int, v policy.Visit, ids []int32), error) {
	log := m.options.ExpertLog
	if !logged(m.CurrentPlan()) {
		log = nil
	}
	if m.options.Trace != nil {
		var err error
		if m.trace, err = m.newTracer(m.options.Trace); err != nil {
			return nil, err
		}
	}
	switch t := m.trace; {
	case t == nil && log == nil:
		return nil, nil
	case t == nil:
		return log.visit, nil
	case log == nil:
		return t.visit, nil
	default:
		return func(layer int, v policy.Visit, ids []int32) {
			t.visit(layer, v, ids)
			log.visit(layer, v, ids)
		}, nil
	}
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
