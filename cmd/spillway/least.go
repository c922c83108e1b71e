package main

import (
	"fmt"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/report"
)

// A span is a part of what a model ran, in the log of its experts.
type span struct {
	log      *spillway.ExpertLog // nil: there is none
	from, to int
	warm     bool // memory was full before
	io       pager.Stats
}

// spanOf is all that a model has done.
func spanOf(m *spillway.Model) span {
	x := span{log: m.Options().ExpertLog, io: m.IO()}
	if e := m.CurrentPlan().Experts; x.log == nil || e == nil || e.Slots == 0 {
		return span{}
	}
	x.to = x.log.End()
	return x
}

// required is the least that any policy reads in the span: the weights that stay, rows that are looked up, and what Belady's
// optimum reads of the experts.
func (x span) required() (int64, error) {
	n, err := x.log.Least(x.from, x.to, x.warm)
	return min(x.io.Loaded+x.io.Looked+n, x.io.Read), err
}

// fill notes in a report what had to be read, and returns it; it is −1 if that is not known.
func (x span) fill(r *report.Report, required int64) int64 {
	if required < 0 && x.log != nil {
		n, err := x.required()
		if err == nil {
			required = n
		} else {
			r.Notes = append(r.Notes, fmt.Sprintf("what had to be read is not known: %v", err))
		}
	}
	r.IO.RequiredBytes = max(required, 0)
	return required
}
