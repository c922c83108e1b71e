package spillway

import (
	"fmt"
	"sync"

	"github.com/spillway/spillway/internal/budget"
)

// ReserveOutside leases n bytes for what the system is going to charge to the process beside its heap, such
// as buffers of sockets. It fails as Reserve does.
func (rt *Runtime) ReserveOutside(n int64, what string) (release func(), err error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch {
	case rt.closed:
		return nil, fmt.Errorf("the runtime is %w", ErrClosed)
	case n < 0:
		return nil, fmt.Errorf("%d bytes for %s are not possible", n, what)
	}
	if rt.own == nil {
		if err := rt.roomBeforePlan(n, what); err != nil {
			return nil, err
		}
	}
	lease, err := rt.ledger.Reserve(budget.Runtime, n, what)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		if err := lease.Release(); err != nil {
			panic(err) // nobody else has the lease
		}
	}), nil
}
