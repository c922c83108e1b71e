package server

import (
	"errors"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/pool"
)

// A Limit makes what holds an answer to the form that was asked for, anew for each answer; nil: nothing does.
type Limit func() spillway.Constraint

// Constraint is the one of one answer.
func (l Limit) Constraint() spillway.Constraint {
	if l == nil {
		return nil
	}
	return l()
}

// Constrain makes what a prepared request demands of its answers, until the exchange ends. Errors are about the
// field param. What reads the answers is put into the request.
func (x *Exchange) Constrain(h *pool.Held, r *spillway.Request, d spillway.Demand, param string) (Limit, error) {
	if !d.Demanding() {
		return nil, nil
	}
	limit, err := h.Constrain(x.ctx, r, d)
	var refused *spillway.FormError
	switch {
	case errors.As(err, &refused):
		return nil, &Error{Status: 400, Code: CodeInvalid, Param: param, Message: param + ": " + err.Error(), cause: err}
	case err != nil:
		return nil, err
	}
	x.Defer(limit.Close)
	return limit.Constraint, nil
}
