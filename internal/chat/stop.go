package chat

import "strings"

// StopScanner looks for stop strings in text that arrives in pieces. It holds back what may be the
// beginning of one, so that no part of a stop string is ever shown. The result does not depend on where
// the pieces are cut: the stop string that ends first counts, and of two that end together the longer.
type StopScanner struct {
	stops   []string
	longest int
	held    string
	found   string
}

// NewStopScanner looks for any of stops; empty ones do not count.
func NewStopScanner(stops []string) *StopScanner {
	s := &StopScanner{}
	for _, stop := range stops {
		if stop != "" {
			s.stops = append(s.stops, stop)
			s.longest = max(s.longest, len(stop))
		}
	}
	return s
}

// Push takes a piece and returns what may be shown. After a stop string, which stopped reports, nothing
// more is shown.
func (s *StopScanner) Push(piece string) (show string, stopped bool) {
	if s.found != "" {
		return "", true
	}
	text := s.held + piece
	if start, stop := s.first(text); stop != "" {
		s.held, s.found = "", stop
		return text[:start], true
	}
	hold := s.hold(text)
	s.held = strings.Clone(text[len(text)-hold:])
	return text[:len(text)-hold], false
}

// first returns the stop string in text that ends first, or "".
func (s *StopScanner) first(text string) (start int, stop string) {
	end := len(text) + 1
	for _, each := range s.stops {
		at := strings.Index(text, each)
		if at < 0 || at+len(each) > end || at+len(each) == end && len(each) < len(stop) {
			continue
		}
		start, end, stop = at, at+len(each), each
	}
	return start, stop
}

// hold returns the length of the longest end of text that a stop string begins with.
func (s *StopScanner) hold(text string) int {
	for n := min(len(text), s.longest-1); n > 0; n-- {
		for _, stop := range s.stops {
			if strings.HasPrefix(stop, text[len(text)-n:]) {
				return n
			}
		}
	}
	return 0
}

// Flush returns what was held back, for an answer that ended without a stop string.
func (s *StopScanner) Flush() string {
	held := s.held
	s.held = ""
	return held
}

// Found returns the stop string that was found, or "".
func (s *StopScanner) Found() string { return s.found }
