package spillway

import (
	"errors"
	"fmt"
	"sync"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/mem"
)

// aside is memory that Constrain takes first: models that start take what they find.
type aside struct {
	lease *budget.Lease // nil: none
	used  int64
}

// SetAside leases n bytes for what Model.Constrain is going to need, before models take the rest, until release is
// called. It fails as Reserve does, and once something is set aside.
func (rt *Runtime) SetAside(n int64) (release func(), err error) {
	lease, give, err := rt.lend(n, "grammars to come")
	if err != nil {
		return nil, err
	}
	rt.mu.Lock()
	twice := rt.aside.lease != nil
	if !twice {
		rt.aside = aside{lease: lease}
	}
	rt.mu.Unlock()
	if twice {
		give()
		return nil, errors.New("memory for grammars is set aside already")
	}
	return func() {
		rt.mu.Lock()
		rt.aside.lease = nil
		rt.mu.Unlock()
		give()
	}, nil
}

// AsideBytes is what is worth to set aside at a memory of so many bytes for a vocabulary of so many tokens: what one
// grammar of usual size takes.
func AsideBytes(memory int64, tokens int) int64 {
	s, n := formSizes(memory), int64(tokens)
	s.limits.Nodes /= 4
	return s.shared + (tokenKeptBytes+tokenTrieBytes)*n + max(tokenBuildBytes*n, grammar.CompileBytes(s.limits), grammar.UsedBytes(s.limits)) + asideSlack
}

const (
	tokenTrieBytes = 28        // of a vocabulary's trie, for each token
	asideSlack     = 512 << 10 // texts, and compiled grammars
)

// reserveForm is Reserve from what was set aside, as far as it goes.
func (rt *Runtime) reserveForm(n int64, what string) (release func(), err error) {
	rt.mu.Lock()
	if a := &rt.aside; a.lease != nil && n <= a.lease.Bytes()-a.used {
		a.used += n
		rt.mu.Unlock()
		return sync.OnceFunc(func() {
			rt.mu.Lock()
			defer rt.mu.Unlock()
			rt.aside.used -= n
		}), nil
	}
	rt.mu.Unlock()
	return rt.Reserve(n, what)
}

// newFormBuffer is memory outside the Go heap; what was set aside shrinks where the ledger has no other room.
func (rt *Runtime) newFormBuffer(n int, what string) (*mem.Buffer, error) {
	b, err := mem.New(rt.ledger, budget.Runtime, n, what)
	var full *NoRoomError
	if !errors.As(err, &full) || !rt.shrinkAside(int64(mem.Round(n))) {
		return b, err
	}
	if b, err = mem.New(rt.ledger, budget.Runtime, n, what); err != nil {
		return nil, fmt.Errorf("somebody else took what was set aside: %w", err)
	}
	return b, nil
}

func (rt *Runtime) shrinkAside(n int64) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	a := &rt.aside
	if a.lease == nil || n > a.lease.Bytes()-a.used || a.lease.Resize(a.lease.Bytes()-n) != nil {
		return false
	}
	rt.lent -= n
	rt.setHeapLimit()
	return true
}
