package server

import "github.com/spillway/spillway"

// What the server leases ahead.
const (
	connSockets = 128 << 10 // buffers of a connection's socket: twice what they are set to, as the kernel counts
	connWaiting = 64 << 10  // what one has sent that is not accepted yet
	connHeap    = 64 << 10  // goroutines, readers and writers of a connection, and what its request needs
	connBytes   = connSockets + connWaiting + connHeap
	tlsHeap     = 48 << 10 // what TLS adds to it
	socketBytes = 32 << 10 // a socket's buffers are set to

	fewConns = 8 // are served on the smallest budget

	answersShare = 32 // of the memory is for answers
)

// within is a share of the memory, in bounds.
func (s *Server) within(share, least, most int64) int64 {
	return min(max(s.rt.Memory()/share, least), most)
}

// leaseAhead leases what connections, bodies and prompts may take before models take the rest.
func (s *Server) leaseAhead() error {
	s.conns = int(min(int64(s.options.Connections), max(s.rt.Memory()/16/connBytes, fewConns)))
	outside, err := s.rt.ReserveOutside(int64(s.conns)*(connSockets+connWaiting), "buffers of connections")
	if err != nil {
		return err
	}
	s.leases = append(s.leases, outside)
	heap := int64(connHeap)
	if s.options.TLSCert != "" {
		heap += tlsHeap
	}
	if err := s.Reserve(int64(s.conns)*heap, "connections"); err != nil {
		return err
	}
	if err := s.leaseForms(); err != nil {
		return err
	}
	for _, p := range []struct {
		purse **purse
		bytes int64
		what  string
	}{
		{&s.bodies, s.within(64, 1<<20, 32<<20), "bodies of requests"},
		{&s.prompts, s.within(32, 3<<20, 128<<20), "prompts"},
		{&s.answers, s.within(answersShare, 1<<20, 128<<20), "answers"},
	} {
		if *p.purse, err = s.newPurse(p.bytes, p.what); err != nil {
			return err
		}
	}
	return nil
}

// usualTokens is a vocabulary to set memory aside for before a model is loaded.
const usualTokens = 64 << 10

// leaseForms sets aside what structured output needs, where that is little of the memory; else it takes what there is.
func (s *Server) leaseForms() error {
	n := spillway.AsideBytes(s.rt.Memory(), usualTokens)
	if n > s.rt.Memory()/12 {
		return nil
	}
	release, err := s.rt.SetAside(n)
	if err == nil {
		s.leases = append(s.leases, release)
	}
	return err
}

// longestText is more bytes than a request for any loaded model can have that fits its context; 0: nobody
// knows.
func (s *Server) longestText() int64 {
	longest := int64(0)
	for _, m := range s.Models.List() {
		if !m.Loaded || m.LongestToken == 0 {
			return 0
		}
		longest = max(longest, escaped*int64(m.LongestToken)*int64(m.Limit))
	}
	return longest + bodyPiece
}

// escaped is the most bytes of JSON for a byte of text: \u0041.
const escaped = 6
