package server

import (
	"errors"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/pool"
)

// Constrain makes what a prepared request demands of its answers; it is for as long as the exchange lasts. Errors are
// about the field form where they are about the content. How the answers are read is put into the request.
func (x *Exchange) Constrain(h *pool.Held, r *spillway.Request, d spillway.Demand, form string) (*spillway.Limit, error) {
	limit, err := h.Constrain(x.ctx, r, d)
	var refused *spillway.FormError
	switch {
	case errors.As(err, &refused):
		if refused.Tool != "" || form == "" {
			form = "tools"
		}
		e := Invalid(form, form+": "+err.Error())
		e.cause = err
		return nil, e
	case err != nil:
		return nil, x.Server.orNever(err, 0, 0)
	}
	x.Defer(limit.Close)
	return limit, nil
}
