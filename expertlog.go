package spillway

import (
	"errors"
	"fmt"
	"sync"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/policy"
)

// ExpertLog is which experts the steps of a model needed. From it follows the least that any policy could have read with as many
// slots for experts: see Least. The zero value is ready; a model that is started with it in its options writes it, if experts have slots and
// not all have one. It is for one model, outlives it, and is closed after it.
type ExpertLog struct {
	// Tokens is how many the log is to have room for, as far as the memory goes; 0: those of a context.
	Tokens int64

	mu    sync.Mutex
	rt    *Runtime
	lease *budget.Lease
	buf   *mem.Buffer
	leave func() // the ledger's holders
	log   *policy.Log
	shape policy.Shape
	sizes policy.Sizes
	slots int64 // bytes of all slots
	why   error // there is no log
}

const (
	mostLog    = 8 << 20 // bytes of a log; 400,000 visits to layers with 8 experts for a row
	logShare   = 256     // it takes at most this part of the memory
	logSlack   = 64      // tokens that are computed twice, or for nothing
	logRank    = 20      // it is given up after slots of experts
	whatLog    = "a log of experts"
	mostLogged = 1 << 16 // layers, and experts
)

// Why there is no log, or not all of it.
var (
	errLogFull    = errors.New("more experts were needed than the log of them has room for")
	errLogMemory  = errors.New("the memory leaves no room for a log of the experts that were needed")
	errLogTaken   = errors.New("other things needed the memory of the log of experts")
	errLogResized = errors.New("the memory was changed while experts were needed")
)

// logged reports whether it is of use to log the experts of a plan.
func logged(p *plan.Plan) bool {
	return p.Experts != nil && p.Experts.Slots > 0 && !p.Experts.Resident() && max(p.Experts.Layers, p.Experts.Count) < mostLogged
}

// bytes is what a log takes for a model in so much memory.
func (l *ExpertLog) bytes(m *layout.Model, context int, memory int64) int64 {
	tokens := l.Tokens
	if tokens <= 0 {
		tokens = int64(context)
	}
	layers, most := int64(len(m.Experts)), min(mostLog, memory/logShare)
	tokens = min(tokens, most) + logSlack // no product passes 64 bits
	return int64(mem.Round(int(min(policy.LogBytes(tokens*layers, tokens*layers*int64(m.Experts[0].Used)), most))))
}

// planLogged makes a plan, with room for a log of experts if one is wanted and the plan stays of its kind: no least depends on it.
func (o *ModelOptions) planLogged(r plan.Request) (p *plan.Plan, log int64, err error) {
	p, err = plan.Make(r)
	if err != nil || o.ExpertLog == nil || !logged(p) {
		return p, 0, err
	}
	whole := r.Budget
	log = o.ExpertLog.bytes(r.Model, r.Context, whole)
	r.Budget -= log
	if q, err := plan.Make(r); err == nil && logged(q) && log > 0 {
		q.Budget = whole
		return q, log, nil
	}
	return p, 0, nil
}

// startLog leases a log of n bytes for a model that was planned with it.
func (m *Model) startLog(n int64) (err error) {
	l := m.options.ExpertLog
	if l == nil || !logged(m.CurrentPlan()) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rt != nil {
		return errors.New("an ExpertLog is for one model")
	}
	l.rt = m.rt
	l.measure(m)
	if n == 0 {
		l.why = errLogMemory
		return nil
	}
	if l.lease, err = m.rt.ledger.Reserve(budget.Runtime, n, whatLog); err != nil {
		return err
	}
	if l.buf, err = mem.Map(l.lease, int(n)); err != nil {
		return errors.Join(err, l.free())
	}
	l.log = policy.NewLog(mem.AsUint16s(l.buf.Bytes()))
	l.leave = m.rt.ledger.Register(logRank, logHolder{l})
	return nil
}

// measure notes how large the model's experts are, and the memory that holds some. Slots are as large as the largest expert and its ends, which
// reads of whole pages need; a policy that cuts slots to the size of each has more of them.
func (l *ExpertLog) measure(m *Model) {
	experts, place := m.Layout().Experts, m.CurrentPlan().Placement.Experts
	l.shape = policy.Shape{Layers: len(experts), Experts: experts[0].Count()}
	l.slots = int64(place.Slots) * place.SlotBytes
	largest := int64(0)
	for i := range experts {
		l.sizes.Read = append(l.sizes.Read, experts[i].Bytes())
		largest = max(largest, experts[i].Bytes())
	}
	for _, n := range l.sizes.Read {
		l.sizes.Held = append(l.sizes.Held, n+place.SlotBytes-largest)
	}
}

// visit is nn.Env.Routing.
func (l *ExpertLog) visit(layer int, v policy.Visit, _ []int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log != nil {
		l.log.Add(layer, v)
	}
}

// logHolder gives up the log when nobody else has memory to give.
type logHolder struct{ l *ExpertLog }

func (h logHolder) Shrink(int64) { h.l.drop(errLogTaken) }

// drop gives up the log while its model runs.
func (l *ExpertLog) drop(why error) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log != nil {
		l.why = errors.Join(why, l.free())
	}
}

// End is where the log is now, for Least. It never fails: Least says what became of the log.
func (l *ExpertLog) End() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log == nil {
		return -1
	}
	return l.log.End()
}

// Least is the fewest bytes of experts that any policy reads between two Ends, had it the memory of the model's slots and known all that was
// to come (Belady 1966). To begin with memory is empty, or, warm, holds the best there is. Where the sizes of experts differ it is a bound of that. It
// needs memory, and fails without: models should be closed by then. It fails, too, if the log is not complete, and says why.
func (l *ExpertLog) Least(from, to int, warm bool) (int64, error) {
	n, err := l.leastMemory(from, to)
	if err != nil {
		return 0, err
	}
	release, err := l.rt.Reserve(n, "Belady's optimum") // which may ask for the log
	if err != nil {
		return 0, fmt.Errorf("%s would be needed to find out what had to be read: %w", machine.FormatSize(n), err)
	}
	defer release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log == nil {
		return 0, l.why
	}
	return policy.NewFuture(l.shape, l.log.Steps(from, to)).LeastBytes(l.sizes, l.slots, warm), nil
}

// leastMemory is what Least needs.
func (l *ExpertLog) leastMemory(from, to int) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.why != nil:
		return 0, l.why
	case l.log == nil:
		return 0, errors.New("no experts were logged")
	case from < 0 || to < 0:
		return 0, errLogFull
	}
	visits, demands := l.log.Count(from, to)
	return policy.FutureBytes(l.shape, visits, demands), nil
}

// Close gives back the log's memory. A second Close does nothing.
func (l *ExpertLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log != nil {
		l.why = fmt.Errorf("the log of experts is %w", ErrClosed)
	}
	return l.free()
}

// free gives the memory back. The lock is held.
func (l *ExpertLog) free() (err error) {
	if l.leave != nil {
		l.leave()
	}
	if l.buf != nil {
		err = l.buf.Free()
	}
	if l.lease != nil {
		err = errors.Join(err, l.lease.Release())
	}
	l.leave, l.buf, l.lease, l.log = nil, nil, nil, nil
	return err
}
