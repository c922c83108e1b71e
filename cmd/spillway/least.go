package main

import (
	"fmt"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/plan"
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

// required is the least that any policy reads in the span: the weights that stay, and what Belady's optimum reads of the experts. Rows that are
// looked up are left out, a few KiB for a token: a policy might keep them. Who was interrupted has not read all that was needed.
func (x span) required() (int64, error) {
	n, err := x.log.Least(x.from, x.to, x.warm)
	return min(x.io.Loaded+n, x.io.Read), err
}

// fill notes in a report what had to be read, if its work does not say that it is known already (−1: it is not). An error says why it is still unknown.
func (x span) fill(r *report.Report, w *plan.Work) (err error) {
	if w.Required < 0 && x.log != nil {
		var n int64
		if n, err = x.required(); err == nil {
			w.Required = n
		}
	}
	r.IO.RequiredBytes = max(w.Required, 0)
	return err
}

// unknown is what a reader is told of an error of required.
func unknown(err error) string { return fmt.Sprintf("what had to be read is not known: %v", err) }
