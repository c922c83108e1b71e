package pager

import "time"

// Stats counts since Open. Bytes are those of the drive's answers, alignment included, unless said
// otherwise.
type Stats struct {
	Sweeps   int64 // begun
	Passed   int64 // bytes of matrices that sweeps have used, wherever they were
	Hit      int64 // of these, bytes that were in memory already: not read for this sweep
	Read     int64 // bytes read in all
	Loaded   int64 // of these, to fill pinned units
	Looked   int64 // of these, for rows of embeddings and for vectors
	Requests int64 // reads
	Experts  int64 // that visits have needed
	// ExpertHits is how many of them were in memory.
	ExpertHits int64
	// Guesses are experts that were read because a layer would probably need them, GuessesUsed those that it needed then,
	// GuessesDropped those whose reads were given up, Guessed the bytes read for them (part of Read) before anybody asked;
	// GuessesOff is how often guessing was switched off for a while because few were right.
	Guesses, GuessesUsed, GuessesDropped, Guessed, GuessesOff int64
	Filled                                                    int64         // of Read, for experts in empty slots before anybody asked
	Wait                                                      time.Duration // that sweeps have waited for the drive
	Busy                                                      time.Duration // with at least one read in flight
}

// Streamed is the bytes that were read through the ring.
func (s Stats) Streamed() int64 { return s.Read - s.Loaded - s.Looked }

// Sub is what was added since an earlier count.
func (s Stats) Sub(e Stats) Stats {
	return Stats{
		Sweeps: s.Sweeps - e.Sweeps, Passed: s.Passed - e.Passed, Hit: s.Hit - e.Hit, Read: s.Read - e.Read,
		Loaded: s.Loaded - e.Loaded, Looked: s.Looked - e.Looked, Requests: s.Requests - e.Requests,
		Experts: s.Experts - e.Experts, ExpertHits: s.ExpertHits - e.ExpertHits,
		Guesses: s.Guesses - e.Guesses, GuessesUsed: s.GuessesUsed - e.GuessesUsed, GuessesDropped: s.GuessesDropped - e.GuessesDropped,
		Guessed: s.Guessed - e.Guessed, GuessesOff: s.GuessesOff - e.GuessesOff,
		Filled: s.Filled - e.Filled, Wait: s.Wait - e.Wait, Busy: s.Busy - e.Busy,
	}
}

// Stats returns the counts.
func (p *Pager) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	if p.flying > 0 {
		s.Busy += time.Since(p.since)
	}
	return s
}
