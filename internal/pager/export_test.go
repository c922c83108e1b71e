package pager

// Progress is the requests that were made, and whether some are in flight.
func (p *Pager) Progress() (requests int64, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats.Requests, p.flying > 0
}
