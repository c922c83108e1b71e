package main

import (
	"errors"
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
	why      error // there is no log, though experts had to be read
}

var errNoSlots = errors.New("no expert has room to stay in memory, so that all pass through it in pieces whenever they are needed")

// spanOf is all that a model has done.
func spanOf(m *spillway.Model) span {
	x := span{log: m.Options().ExpertLog, io: m.IO()}
	e := m.CurrentPlan().Experts
	if x.log == nil || e == nil || e.Slots == 0 {
		return span{why: whyUnlogged(e)}
	}
	x.to = x.log.End()
	return x
}

// whyUnlogged is why the experts of a plan are not logged, if there are some.
func whyUnlogged(e *plan.Experts) error {
	if e != nil && e.Slots == 0 {
		return errNoSlots
	}
	return nil
}

// required is the least that any policy reads in the span: the weights that stay, and what Belady's optimum reads of the experts. Rows that are
// looked up are left out, a few KiB for a token: a policy might keep them. Who was interrupted has not read all that was needed.
func (x span) required() (int64, error) {
	n, err := x.log.Least(x.from, x.to, x.warm)
	return min(x.io.Loaded+n, x.io.Read), err
}

// find completes work that does not know what had to be read (−1). An error says why that is still unknown.
func (x span) find(w *plan.Work) error {
	switch {
	case w.Required >= 0:
		return nil
	case x.log == nil:
		return x.why
	}
	n, err := x.required()
	if err == nil {
		w.Required = n
	}
	return err
}

// fill notes in a report what had to be read.
func (x span) fill(r *report.Report, w *plan.Work) error {
	err := x.find(w)
	r.IO.RequiredBytes = max(w.Required, 0)
	return err
}

// unknown is what a reader is told of an error of required.
func unknown(err error) string { return fmt.Sprintf("what had to be read is not known: %v", err) }
