package trace

import (
	"io"
	"slices"

	"github.com/spillway/spillway/internal/policy"
)

// Trace is a trace in memory, as policies see it: what each step needs of each layer.
type Trace struct {
	Header Header
	Steps  int
	Rows   int // that passed the first layer of each step
	steps  []policy.Step
	visits []visit  // beside steps
	counts []uint16 // how many rows of answers and of prompts chose an expert, for visits of several rows
}

type visit struct {
	decode, prefill uint16
	counts          int // where they begin, -1 if a single row passed
}

// block is how many ids are kept in one piece of memory.
const block = 16 << 10

// What memory takes: for a visit and for each of its demands, with what growth copies and Replay's look at the future; for an expert of a
// layer, in all that Replay runs at a time; and for the records on their way.
const (
	perVisit  = 160
	perDemand = 24
	perExpert = 256
	reading   = 4 << 20
)

// Load reads a trace. Before its memory grows it asks room for so many more bytes, which includes what Replay
// needs, and fails with what that answers. nil grants everything.
func Load(src Source, room func(bytes int64) error) (*Trace, error) {
	t := &Trace{Header: src.Header()}
	l := loader{trace: t, room: room, rows: make([][2]uint16, t.Header.Experts)}
	if err := l.grant(int64(t.Header.Layers*t.Header.Experts)*perExpert + reading); err != nil {
		return nil, err
	}
	last := -1
	for {
		r, err := src.Next()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		if r.Step != last {
			last = r.Step
			t.Steps++
			t.Rows += r.Decode + r.Prefill
		}
		if err := l.add(r); err != nil {
			return nil, err
		}
	}
}

// loader turns rows into demands.
type loader struct {
	trace   *Trace
	room    func(int64) error
	granted int64
	ids     []uint16    // the block that is being filled
	rows    [][2]uint16 // by expert: how many rows of a visit chose it
}

// grant asks for room in large pieces.
func (l *loader) grant(n int64) error {
	const piece = 1 << 20
	if l.granted -= n; l.granted >= 0 || l.room == nil {
		return nil
	}
	want := (-l.granted + piece - 1) / piece * piece
	l.granted += want
	return l.room(want)
}

func (l *loader) add(r Record) error {
	used := l.trace.Header.Used
	ids := l.distinct(r, used)
	n := len(ids)
	if err := l.grant(perVisit + perDemand*int64(n)); err != nil {
		return err
	}
	v := visit{uint16(r.Decode), uint16(r.Prefill), -1}
	if r.Decode+r.Prefill > 1 {
		v.counts = len(l.trace.counts)
		for _, e := range ids {
			l.trace.counts = append(l.trace.counts, l.rows[e][0], l.rows[e][1])
		}
	}
	for _, e := range ids {
		l.rows[e] = [2]uint16{}
	}
	l.trace.steps = append(l.trace.steps, policy.Step{Layer: int32(r.Layer), Experts: ids})
	l.trace.visits = append(l.trace.visits, v)
	return nil
}

// distinct counts the rows of each expert and returns those that have some: by rank of their best row, earlier rows first.
func (l *loader) distinct(r Record, used int) []uint16 {
	if len(l.ids)+min(len(r.Experts), l.trace.Header.Experts) > cap(l.ids) {
		l.ids = make([]uint16, 0, max(block, l.trace.Header.Experts))
	}
	start := len(l.ids)
	for rank := range used {
		for row := range r.Decode + r.Prefill {
			e := r.Experts[row*used+rank]
			if l.rows[e] == [2]uint16{} {
				l.ids = append(l.ids, e)
			}
			if row < r.Decode {
				l.rows[e][0]++
			} else {
				l.rows[e][1]++
			}
		}
	}
	return slices.Clip(l.ids[start:])
}

// Shape of the model's experts.
func (t *Trace) Shape() policy.Shape {
	return policy.Shape{Layers: t.Header.Layers, Experts: t.Header.Experts}
}

// ExpertBytes is the size of an expert of a layer, 0 if the trace does not know.
func (t *Trace) ExpertBytes(layer int) int64 {
	if t.Header.ExpertBytes == nil {
		return 0
	}
	return t.Header.ExpertBytes[layer]
}

// SlotBytes is the size of a slot, which must hold the largest expert, 0 if the trace does not know.
func (t *Trace) SlotBytes() int64 {
	var n int64
	for _, b := range t.Header.ExpertBytes {
		n = max(n, b)
	}
	return n
}

// visit i as a rule sees it; demands is scratch for its experts.
func (t *Trace) visit(i int, demands []policy.Demand) policy.Visit {
	v := t.visits[i]
	demands = demands[:0]
	for j, e := range t.steps[i].Experts {
		d := policy.Demand{Expert: int32(e), Decode: int32(v.decode), Prefill: int32(v.prefill)}
		if v.counts >= 0 {
			d.Decode, d.Prefill = int32(t.counts[v.counts+2*j]), int32(t.counts[v.counts+2*j+1])
		}
		demands = append(demands, d)
	}
	return policy.Visit{Decode: int32(v.decode), Prefill: int32(v.prefill), Demands: demands}
}

// Heat is how often each expert was needed, by layer × experts + expert: steps that needed it.
func (t *Trace) Heat() []int64 {
	heat := make([]int64, t.Header.Layers*t.Header.Experts)
	for _, s := range t.steps {
		for _, e := range s.Experts {
			heat[int(s.Layer)*t.Header.Experts+int(e)]++
		}
	}
	return heat
}

// Rates are the shares of rows that chose each expert, by layer × experts + expert.
func (t *Trace) Rates() []float64 {
	rates, rows := make([]float64, t.Header.Layers*t.Header.Experts), make([]float64, t.Header.Layers)
	demands := make([]policy.Demand, t.Header.Experts)
	for i, s := range t.steps {
		v := t.visit(i, demands)
		rows[s.Layer] += float64(v.Decode + v.Prefill)
		for _, d := range v.Demands {
			rates[int(s.Layer)*t.Header.Experts+int(d.Expert)] += float64(d.Decode + d.Prefill)
		}
	}
	for i := range rates {
		rates[i] /= max(rows[i/t.Header.Experts], 1)
	}
	return rates
}

// AllBytes is the size of all experts, 0 if the trace does not know.
func (t *Trace) AllBytes() int64 {
	var n int64
	for _, b := range t.Header.ExpertBytes {
		n += b * int64(t.Header.Experts)
	}
	return n
}
