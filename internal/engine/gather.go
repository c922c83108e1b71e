package engine

import (
	"sync"
	"time"
)

// gathering decides how long a sweep over weights that stream waits for more requests to share it: those who
// have just had an answer, and those who come in a burst, are likely to be here in a moment, and a request that
// misses the sweep waits for the whole of it. So a sweep waits until nobody has come or gone for a while, for a
// small part of the time that it takes. Where weights lie in memory it never does.
type gathering struct {
	on      bool
	took    time.Duration // the last sweep
	last    time.Time     // when somebody came or went
	waits   int64
	waited  time.Duration
	arrived chan struct{}
	now     func() time.Time
	after   func(time.Duration) <-chan time.Time
}

const (
	gatherPart  = 16                     // of a sweep's time is waited at most,
	gatherMost  = 100 * time.Millisecond // or this;
	gatherQuiet = 4 * time.Millisecond   // and for so long after each one who comes or goes,
	quietPart   = 4                      // or this part of the most
)

func newGathering(on bool) gathering {
	return gathering{on: on, arrived: make(chan struct{}, 1), now: time.Now, after: timer()}
}

// timer is time.After with one timer for all calls: each one ends the wait before.
func timer() func(time.Duration) <-chan time.Time {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return func(d time.Duration) <-chan time.Time {
		t.Reset(d)
		return t.C
	}
}

// sweep notes how long a sweep took.
func (g *gathering) sweep(took time.Duration) { g.took = took }

// changed notes that somebody came or went.
func (g *gathering) changed(at time.Time) {
	g.last = at
	g.wake()
}

func (g *gathering) wake() {
	select {
	case g.arrived <- struct{}{}:
	default:
	}
}

// more is how long to wait before it is asked again; 0: the sweep begins. The wait began at begin.
func (g *gathering) more(begin, now time.Time) time.Duration {
	most := min(g.took/gatherPart, gatherMost)
	quiet := min(most/quietPart, gatherQuiet)
	return max(min(quiet-now.Sub(g.last), most-now.Sub(begin)), 0)
}

// wait waits for company. The lock is held, and let go meanwhile.
func (g *gathering) wait(lock *sync.Mutex) {
	if !g.on {
		return
	}
	begin := g.now()
	for now := begin; ; now = g.now() {
		d := g.more(begin, now)
		if d <= 0 {
			break
		}
		lock.Unlock()
		select {
		case <-g.arrived:
		case <-g.after(d):
		}
		lock.Lock()
	}
	if d := g.now().Sub(begin); d > 0 && g.more(begin, begin) > 0 {
		g.waits++
		g.waited += d
	}
}
