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

// GuessLayers is how many layers ahead experts are predicted at most: where most of them are in memory, what the next layer lacks is soon
// read, and the drive would rest.
const GuessLayers = 2

const (
	// guessRequest is small: what is on its way when a layer asks, and is not what it needs, delays it. Where nearly all guesses
	// are right (guessSure of four), reads are as large as others.
	guessRequest = 1 << 20
	guessSure    = 3
	guessReads   = 3
	// mostGuesses is for how many experts of a layer that are not in memory a prediction may read.
	mostGuesses = 4
	farShare    = 16 // of the slots may be held when a guess for more than the next layer is made
	// After so many guesses their worth is judged; less than one in guessShare used is a loss. Later they are tried again.
	guessWindow = 64
	guessShare  = 4
	guessPause  = 1024 // sweeps
)

// guesses are experts that are read while nobody waits for the drive.
type guesses struct {
	mode   Prediction
	wanted []guess     // the nearest layer first, and of a layer the most probable expert
	some   int         // of wanted that were looked at
	others []int32     // scratch of makeGuess
	jobs   []expertJob // of the one that is read, from next on
	next   int
	flying int
	held   []heldGuess
	ahead  [GuessLayers]guessRecord // by how far ahead they are, less 1
}

type guess struct{ layer, expert int32 }

// heldGuess is a slot that is filled, or being filled, for a layer to come. It is in use until that layer asks.
type heldGuess struct {
	slot  int
	ahead int
}

// guessRecord is what guesses so far ahead were worth.
type guessRecord struct {
	made   int // since the last judgement
	used   int
	sure   bool   // at the last judgement nearly all were right
	paused uint64 // sweeps that are still to pass without
}

// errDropped marks a slot whose read was given up.
var errDropped = errors.New("pager: internal error: a guess that was dropped is used")

// Predicts reports whether predictions so many layers ahead are of use: experts have slots, not all of them are in memory, and they pay.
func (p *Pager) Predicts(ahead int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := &p.experts.guess
	return p.experts.table != nil && g.mode != PredictNever && g.ahead[ahead-1].paused == 0 && !p.ExpertsResident()
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

// Predict says which experts one of the next GuessLayers layers will probably need, the most probable ones first. It is called after a
// layer has asked, for the nearest one first, and reports whether more may be said, of a layer further ahead. What is not in memory is read
// while nothing else is. It decides nothing but that: a layer gets what it asks for.
func (s *Sweep) Predict(layer int, experts []int32) (more bool) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	g := &p.experts.guess
	ahead := layer - p.experts.layer
	if s.done || p.experts.table == nil || ahead < 1 || ahead > GuessLayers || layer >= len(p.model.Experts) {
		return false
	}
	if t := p.unfinishedGuess(); t != nil && int(t.layer) == layer && !slices.Contains(experts, t.expert) {
		p.dropGuess()
	}
	g.wanted = slices.DeleteFunc(g.wanted, func(w guess) bool { return int(w.layer) >= layer })
	for _, e := range experts {
		g.wanted = append(g.wanted, guess{int32(layer), e})
	}
	g.some = 0
	for range guessReads {
		p.work.Signal()
	}
	return p.missing(g.wanted) < mostGuesses
}

// missing is how many guesses are not in memory, and not being read either. The lock is held.
func (p *Pager) missing(of []guess) (n int) {
	for _, w := range of {
		if _, ok := p.experts.table.Holds(int(w.layer), int(w.expert)); !ok {
			n++
		}
	}
	return n
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
	for ; g.some < len(g.wanted); g.some++ {
		w := g.wanted[g.some]
		layer, ahead := int(w.layer), int(w.layer)-x.layer
		if _, ok := x.table.Holds(layer, int(w.expert)); ok || g.ahead[ahead-1].paused > 0 || !p.mayHold(layer, ahead) {
			continue
		}
		slot, ok := x.table.LoadBeside(layer, int(w.expert), g.wantedOf(w.layer))
		if !ok {
			return false
		}
		g.some++
		p.fillGuess(slot, w, ahead)
		return len(g.jobs) > 0
	}
	return false
}

// fillGuess lists the reads that fill the slot of a guess. The lock is held.
func (p *Pager) fillGuess(slot int, w guess, ahead int) {
	g := &p.experts.guess
	record := &g.ahead[ahead-1]
	record.made++
	g.held = append(g.held, heldGuess{slot, ahead})
	request := int64(guessRequest)
	if record.sure {
		request = 0
	}
	g.jobs, g.next = p.fillSlot(g.jobs[:0], slot, int(w.layer), int(w.expert), request), 0
	for i := range g.jobs {
		g.jobs[i].guess = true
	}
	p.experts.slots[slot].guess = true
}

// wantedOf are the experts that a layer will probably need, valid until the next call.
func (g *guesses) wantedOf(layer int32) []int32 {
	g.others = g.others[:0]
	for _, w := range g.wanted {
		if w.layer == layer {
			g.others = append(g.others, w.expert)
		}
	}
	return g.others
}

// mayHold reports whether one more slot may be held for a layer so far ahead. The lock is held.
func (p *Pager) mayHold(layer, ahead int) bool {
	x := &p.experts
	if ahead > 1 && len(x.guess.held) >= len(x.slots)/farShare {
		return false
	}
	n := 0
	for _, h := range x.guess.held {
		if int(x.slots[h.slot].layer) == layer {
			n++
		}
	}
	return n < mostGuesses
}

// unfinishedGuess is the slot of a guess with reads that have not begun; nil for none. The lock is held.
func (p *Pager) unfinishedGuess() *expertSlot {
	g := &p.experts.guess
	if g.next == len(g.jobs) {
		return nil
	}
	return &p.experts.slots[g.jobs[g.next].slot]
}

// endGuesses ends the guesses for a layer that asks: of the unfinished one it takes the reads on if it needs them. The lock is held.
func (p *Pager) endGuesses(layer int) {
	x := &p.experts
	g := &x.guess
	g.wanted, g.some = g.wanted[:0], 0
	t := p.unfinishedGuess()
	switch {
	case t == nil || int(t.layer) > layer:
	case int(t.layer) == layer && p.demanded(t.expert):
		for _, j := range g.jobs[g.next:] {
			j.guess = false
			x.push(j)
			p.work.Signal()
		}
		g.jobs, g.next = g.jobs[:0], 0
	default:
		p.dropGuess()
	}
}

// dropGuess gives up the reads of the unfinished guess. The lock is held.
func (p *Pager) dropGuess() {
	x := &p.experts
	g := &x.guess
	rest := g.jobs[g.next:]
	g.jobs, g.next = g.jobs[:0], 0
	slot := rest[0].slot
	t := &x.slots[slot]
	g.held = slices.DeleteFunc(g.held, func(h heldGuess) bool { return h.slot == slot })
	p.stats.Guesses++
	p.stats.GuessesDropped++
	t.err, t.guess = errDropped, false
	x.table.Discard(slot)
	if t.left -= int32(len(rest)); t.left == 0 {
		x.reading--
		t.state = failed
		x.table.Release(slot)
	}
}

// letGo ends all guesses and the use of their slots; false says that there were none. The lock is held.
func (p *Pager) letGo() bool {
	g := &p.experts.guess
	g.wanted, g.some = g.wanted[:0], 0
	if len(g.held) == 0 {
		return false
	}
	if p.unfinishedGuess() != nil {
		p.dropGuess()
	}
	for _, h := range g.held {
		p.stats.Guesses++
		p.freeGuess(h)
	}
	g.held = g.held[:0]
	return true
}

// freeGuess ends the use of a slot by a guess; while it is read, its last read does. The lock is held.
func (p *Pager) freeGuess(h heldGuess) {
	t := &p.experts.slots[h.slot]
	t.guess = false
	if t.state != reading {
		p.experts.table.Release(h.slot)
	}
	p.rested.Broadcast()
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

// judge counts which guesses a layer that asks has use for, ends the use of their slots, and stops guessing if few were right. What it needs
// stays marked. The lock is held.
func (p *Pager) judge(layer int) {
	x := &p.experts
	g := &x.guess
	left := g.held[:0]
	for _, h := range g.held {
		t := &x.slots[h.slot]
		if int(t.layer) > layer {
			left = append(left, h)
			continue
		}
		p.stats.Guesses++
		right := int(t.layer) == layer && t.err == nil && p.demanded(t.expert)
		if right {
			g.ahead[h.ahead-1].used++
			p.stats.GuessesUsed++
		}
		reads := t.state == reading
		p.freeGuess(h)
		t.guess = right && !reads
	}
	g.held = left
	for i := range g.ahead {
		p.stats.GuessesOff += g.ahead[i].judge(g.mode)
	}
}

// judge looks at a full window of guesses; it returns 1 if it stops them.
func (r *guessRecord) judge(mode Prediction) (stops int64) {
	if r.made < guessWindow {
		return 0
	}
	if mode == PredictAuto && r.used*guessShare < r.made {
		r.paused, stops = guessPause, 1
	}
	r.sure = r.used*4 >= r.made*guessSure
	r.made, r.used = 0, 0
	return stops
}
