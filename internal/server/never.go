package server

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/report"
)

// borrow leases memory for a request from what the models have left.
func (s *Server) borrow(n int64, what string) (release func(), err error) {
	give, err := s.rt.Reserve(n, what)
	if err != nil {
		return nil, err
	}
	s.lent.Add(n)
	return sync.OnceFunc(func() {
		s.lent.Add(-n)
		give()
	}), nil
}

// orNever makes of an error about memory that no waiting would mend one that tells the client so. What other requests
// have borrowed comes back, and so does all of the purse that was asked first; what the request itself holds does not.
func (s *Server) orNever(err error, purse, held int64) error {
	var full *spillway.NoRoomError
	if !errors.As(err, &full) {
		return err
	}
	left := full.Free + s.lent.Load()
	most, needs := max(left, purse), full.Asked+held
	if held > 0 { // its parts may come from both
		most = max(left, 0) + purse
	}
	if needs <= most {
		return err
	}
	return &Error{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge, cause: err, Message: fmt.Sprintf(
		"the request can never be answered with this memory: it needs %s for %s, and of %s there are %s; ask for less, or start the server with --memory %s or more",
		report.Bytes(needs), full.What, report.Bytes(s.rt.Memory()), report.Bytes(max(most, 0)), report.CapBytes(s.enough(needs-most)))}
}

// enough is a memory that leaves lack more bytes than there are now. Models that stream take what they find, of which a
// share is kept for requests; others leave it.
func (s *Server) enough(lack int64) int64 {
	const step = 1 << 20
	more := 2 * lack // the server itself takes a share, and caches another
	for _, m := range s.Models.List() {
		if m.Model != nil && !m.Model.CurrentPlan().Resident {
			more = answersShare * lack
		}
	}
	return (s.rt.Memory() + more + step - 1) / step * step
}
