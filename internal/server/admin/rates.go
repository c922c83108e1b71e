package admin

import (
	"sync"
	"time"

	"github.com/spillway/spillway/internal/server/pool"
)

// Rates are what a loaded model did in the last minute, or since it was first looked at if that is less; after a longer
// time without a look, since the one before. What is not known is null.
type Rates struct {
	Seconds  float64  `json:"seconds"` // that they are about
	Read     *float64 `json:"read_bytes_per_second"`
	Best     *float64 `json:"drive_best_bytes_per_second"` // by the drive's profile
	Drive    *float64 `json:"drive_fraction"`              // time that the drive needs for what steps read, at its best, ÷ time that they took
	Roofline *float64 `json:"decode_roofline_fraction"`    // the same with the least that steps of answers must read
}

const (
	window    = time.Minute
	lookApart = time.Second // looks that are nearer are not kept
	bestFor   = time.Minute // a drive's profile is believed to be the one in the cache
)

// A look is what a model had done at one moment.
type look struct {
	at             time.Time
	read           int64         // bytes, without those that fill the memory
	steps, answers time.Duration // that steps, and those of answers alone, took
	answered       int64         // steps of answers alone
	required       int64         // the least bytes that any policy reads for one; 0: the drive bounds nothing; -1: not known
	loads          int           // which of its loads it is
}

// lookAt looks at a loaded model.
func lookAt(s pool.State) look {
	x, io, p := s.Model.Stats(), s.Model.IO(), s.Model.CurrentPlan()
	l := look{
		at: time.Now(), read: io.Read - io.Loaded, steps: x.StepTime, answers: x.AnswerTime, answered: x.AnswerSteps,
		required: p.RequiredBytes(), loads: s.Loads,
	}
	if p.Experts != nil { // only the routing tells
		l.required = -1
	}
	return l
}

// A meter remembers looks at one model, oldest first.
type meter struct{ seen []look }

// since returns the look that rates begin with, and keeps the present one; false if it is the first of its kind.
func (m *meter) since(now look) (begin look, ok bool) {
	if n := len(m.seen); n > 0 && (m.seen[n-1].loads != now.loads || m.seen[n-1].required != now.required) {
		m.seen = nil // another load, or another plan
	}
	for len(m.seen) > 1 && now.at.Sub(m.seen[1].at) >= window {
		m.seen = m.seen[1:]
	}
	n := len(m.seen)
	if ok = n > 0; ok {
		begin = m.seen[0]
	}
	if !ok || now.at.Sub(m.seen[n-1].at) >= lookApart {
		m.seen = append(m.seen, now)
	}
	return begin, ok
}

// ratesOf computes rates between two looks; best is what the drive gives, 0 if nobody knows.
func ratesOf(begin, now look, best float64) Rates {
	r := Rates{Seconds: now.at.Sub(begin.at).Seconds()}
	if best > 0 {
		r.Best = &best
	}
	if r.Seconds <= 0 {
		return r
	}
	read := float64(now.read - begin.read)
	r.Read = part(read, r.Seconds)
	if best <= 0 {
		return r
	}
	r.Drive = part(read/best, (now.steps - begin.steps).Seconds())
	if now.required > 0 {
		r.Roofline = part(float64(now.answered-begin.answered)*float64(now.required)/best, (now.answers - begin.answers).Seconds())
	}
	return r
}

// part is a ÷ b; nil where there is no b.
func part(a, b float64) *float64 {
	if b <= 0 {
		return nil
	}
	a /= b
	return &a
}

// meters are those of all models. They are safe for concurrent use.
type meters struct {
	mu     sync.Mutex
	models map[string]*meter
	drives map[uint64]drive
}

// A drive is what is known of one.
type drive struct {
	best  float64
	until time.Time
}

// rates looks at a loaded model. bestOf says what a drive gives; nil: nobody knows.
func (m *meters) rates(s pool.State, bestOf func(device uint64) float64) Rates {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.models == nil {
		m.models, m.drives = map[string]*meter{}, map[uint64]drive{}
	}
	x := m.models[s.Name]
	if x == nil {
		x = &meter{}
		m.models[s.Name] = x
	}
	now := lookAt(s)
	best := m.best(s.Drive, now.at, bestOf)
	begin, ok := x.since(now)
	if !ok {
		begin = now
	}
	return ratesOf(begin, now, best)
}

// best is what a drive gives. The lock is held.
func (m *meters) best(device uint64, now time.Time, bestOf func(device uint64) float64) float64 {
	if device == 0 || bestOf == nil {
		return 0
	}
	d := m.drives[device]
	if now.After(d.until) {
		d = drive{best: bestOf(device), until: now.Add(bestFor)}
		m.drives[device] = d
	}
	return d.best
}

func (r *Rates) write(t *text, l label) {
	for _, g := range []struct {
		name, help string
		v          *float64
	}{
		{"spillway_drive_read_bytes_per_second", "Read from the drive in the last minute, on average.", r.Read},
		{"spillway_drive_best_bytes_per_second", "What the drive gives at best, as it was measured.", r.Best},
		{"spillway_drive_fraction", "Of the time that steps took, what the drive needs at its best for what they read.", r.Drive},
		{"spillway_decode_roofline_fraction", "Of the time that steps of answers took, what the drive needs at its best for the least that they must read.", r.Roofline},
	} {
		if g.v != nil {
			t.gauge(g.name, g.help, *g.v, l)
		}
	}
}
