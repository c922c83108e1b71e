package engine

import (
	"errors"
	"sync"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/sample"
)

// scratches are the samplers' working memory, one for each compute thread. What changes logits needs much of
// it, which is leased when the first request comes that does.
type scratches struct {
	mu      sync.Mutex
	each    []*sample.Scratch
	buffers []*mem.Buffer // nil: for plain sampling alone
}

func (s *scratches) init(threads int) {
	s.each = make([]*sample.Scratch, threads)
}

// of returns a thread's scratch.
func (s *scratches) of(worker int) *sample.Scratch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.each[worker] == nil {
		s.each[worker], _ = sample.NewScratch(nil, 0, 0)
	}
	return s.each[worker]
}

// PrepareSampling leases the samplers' memory now, as a plan for many requests has it.
func (e *Engine) PrepareSampling() error { return e.samplers.grow(&e.cfg) }

// SamplingBytes is what PrepareSampling leases.
func SamplingBytes(vocab, context, threads int) int64 {
	return int64(threads) * int64(mem.Round(sample.ScratchBytes(vocab, context)))
}

// want makes sure that there is enough for a request.
func (s *scratches) want(c *Config, r *Request) error {
	p := &r.Sampling
	if r.Constraint == nil && !p.NeedsHistory() && p.Allowed == nil && len(p.LogitBias) == 0 && !p.IgnoreEOS {
		return nil
	}
	return s.grow(c)
}

func (s *scratches) grow(c *Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buffers != nil {
		return nil
	}
	n := sample.ScratchBytes(c.Model.Layout.Vocab, c.Context)
	for i := range s.each {
		b, err := mem.New(c.Ledger, budget.Activation, n, "scratch of the samplers")
		if err == nil {
			s.buffers = append(s.buffers, b)
			s.each[i], err = sample.NewScratch(b.Bytes(), c.Model.Layout.Vocab, c.Context)
		}
		if err != nil {
			return errors.Join(err, s.freeLocked())
		}
	}
	return nil
}

func (s *scratches) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.freeLocked() // what cannot be unmapped stays charged
}

func (s *scratches) freeLocked() (err error) {
	for _, b := range s.buffers {
		err = errors.Join(err, b.Free())
	}
	s.buffers = nil
	clear(s.each)
	return err
}
