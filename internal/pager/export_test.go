package pager

// Progress is the requests that were made, and whether some are in flight.
func (p *Pager) Progress() (requests int64, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats.Requests, p.flying > 0
}

// SetGrowStep sets how much memory slots get at once, and returns what it was.
func SetGrowStep(n int64) int64 {
	before := growStep
	growStep = n
	return before
}

// Slots is how many slots there are now, and whether more come.
func (p *Pager) Slots() (n int, growing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.experts.slots), p.growing
}

// Full is how many experts are in memory or on their way, how many of these have reads to come, and how many slots are empty.
func (p *Pager) Full() (held, reading, empty int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := &p.experts
	if x.table == nil {
		return 0, 0, 0
	}
	for l := range p.model.Experts {
		held += x.table.Held(l)
	}
	return held, x.reading, x.table.Empty()
}
