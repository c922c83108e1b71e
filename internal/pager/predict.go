package pager

import (
	"errors"
	"slices"

	"github.com/spillway/spillway/internal/layout"
)

// Prediction says whether experts that a layer will probably need are read before it asks.
type Prediction uint8

// Ways to predict.
const (
	PredictAuto   Prediction = iota // until it measures as a loss
	PredictAlways                   // whatever it measures
	PredictNever
)

const (
	// guessRequest is small: what is on its way when a layer asks, and is not what it needs, delays it. Where nearly all guesses
	// are right (guessSure of four), reads are as large as others.
	guessRequest = 1 << 20
	guessSure    = 3
	guessReads   = 3
	// mostGuesses is for how many experts that are not in memory a prediction may read.
	mostGuesses = 4
	// After so many guesses their worth is judged; less than one in guessShare used is a loss. Later they are tried again.
	guessWindow = 64
	guessShare  = 4
	guessPause  = 1024 // sweeps
)

// guesses are experts that are read while nobody waits for the drive.
type guesses struct {
	mode   Prediction
	layer  int
	wanted []int32     // experts, the most probable one first
	some   int         // of wanted that were looked at
	jobs   []expertJob // of the one that is read, from next on
	next   int
	flying int
	slots  []int32 // that were filled for the layer
	made   int     // since the last judgement
	used   int
	sure   bool   // at the last judgement nearly all were right
	paused uint64 // sweeps that are still to pass without
}

// errDropped marks a slot whose read was given up.
var errDropped = errors.New("pager: internal error: a guess that was dropped is used")

// Predicts reports whether predictions are of use: experts have slots, not all of them are in memory, and they pay.
func (p *Pager) Predicts() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := &p.experts.guess
	return p.experts.table != nil && g.mode != PredictNever && g.paused == 0 && !p.ExpertsResident()
}

// Peek returns a matrix that lies in memory as a whole, and nil if it does not now. It is valid during the sweep that runs.
func (p *Pager) Peek(m *layout.Matrix) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	parts := p.parts[m.ID]
	if len(parts) != 1 || parts[0].part.Rows != m.Rows {
		return nil
	}
	u := &p.units[parts[0].unit]
	if !u.Pinned || u.state != ready {
		return nil
	}
	return u.home[u.Offset-u.start+parts[0].offset:][:m.Bytes()]
}

// Predict says which experts a later layer of this sweep will probably need, the most probable ones first. What of them is not in memory
// is read while nothing else is. It decides nothing but that: a layer gets what it asks for.
func (s *Sweep) Predict(layer int, experts []int32) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	g := &p.experts.guess
	if s.done || p.experts.table == nil || layer < 0 || layer >= len(p.model.Experts) || s.asked && layer == p.experts.layer {
		return
	}
	if g.next == len(g.jobs) || g.layer != layer || !slices.Contains(experts, p.experts.slots[g.jobs[g.next].slot].expert) {
		p.dropGuesses(-1)
	}
	g.layer, g.some = layer, 0
	g.wanted = append(g.wanted[:0], experts...)
	for range guessReads {
		p.work.Signal()
	}
}

// nextGuess takes the next read of a guess, if nothing that is needed is read or waits for it. The lock is held.
func (p *Pager) nextGuess() (expertJob, bool) {
	x := &p.experts
	g := &x.guess
	if x.flying > 0 || x.next < len(x.queue) || g.flying >= guessReads || p.moving {
		return expertJob{}, false
	}
	if g.next == len(g.jobs) && !p.makeGuess() {
		return expertJob{}, false
	}
	g.next++
	return g.jobs[g.next-1], true
}

// makeGuess finds a slot for the next expert of a prediction. The lock is held.
func (p *Pager) makeGuess() bool {
	x := &p.experts
	g := &x.guess
	for ; g.some < len(g.wanted) && len(g.slots) < mostGuesses; g.some++ {
		e := int(g.wanted[g.some])
		if _, ok := x.table.Holds(g.layer, e); ok {
			continue
		}
		slot, ok := x.table.LoadBeside(g.layer, e, g.wanted)
		if !ok {
			return false
		}
		g.some++
		g.slots = append(g.slots, int32(slot))
		g.made++
		request := int64(guessRequest)
		if g.sure {
			request = 0
		}
		g.jobs, g.next = p.fillSlot(g.jobs[:0], slot, g.layer, e, request), 0
		for i := range g.jobs {
			g.jobs[i].guess = true
		}
		x.slots[slot].guess = true
		return len(g.jobs) > 0
	}
	return false
}

// dropGuesses ends the reads of guesses that have not begun; a layer that asks takes those on that it needs. The lock is held.
func (p *Pager) dropGuesses(layer int) {
	x := &p.experts
	g := &x.guess
	g.wanted, g.some = g.wanted[:0], 0
	rest := g.jobs[g.next:]
	g.jobs, g.next = g.jobs[:0], 0
	if len(rest) == 0 {
		return
	}
	slot := rest[0].slot
	t := &x.slots[slot]
	if int(t.layer) == layer && p.demanded(t.expert) {
		for _, j := range rest {
			j.guess = false
			x.push(j)
			p.work.Signal()
		}
		return
	}
	p.stats.GuessesDropped++
	t.err = errDropped
	x.table.Discard(slot)
	if t.left -= int32(len(rest)); t.left == 0 {
		x.reading--
		t.state, t.guess = failed, false
		x.table.Release(slot)
	}
}

// demanded reports whether the visit needs an expert.
func (p *Pager) demanded(expert int32) bool {
	for _, d := range p.experts.visit.Demands {
		if d.Expert == expert {
			return true
		}
	}
	return false
}

// judge counts which guesses a visit has use for, and stops guessing if few were right. The lock is held.
func (p *Pager) judge(layer int) {
	x := &p.experts
	g := &x.guess
	for _, slot := range g.slots {
		if int(slot) >= len(x.slots) {
			continue // given to others meanwhile
		}
		t := &x.slots[slot]
		if t.guess && int(t.layer) == layer && t.err == nil && p.demanded(t.expert) {
			g.used++
			p.stats.GuessesUsed++
		}
	}
	p.stats.Guesses += int64(len(g.slots))
	g.slots = g.slots[:0]
	if g.made < guessWindow {
		return
	}
	if g.mode == PredictAuto && g.used*guessShare < g.made {
		g.paused = guessPause
		p.stats.GuessesOff++
	}
	g.sure = g.used*4 >= g.made*guessSure
	g.made, g.used = 0, 0
}
