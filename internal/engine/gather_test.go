package engine

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// clock is a time that the test moves.
type clock struct{ at time.Time }

// TestGather: a sweep waits for company, by a clock that the files move.
//
//	wait sweep=… changed=… [comes=after,…]: a sweep is about to begin; the last one took so long, somebody came or went so
//	long ago, and others come so long after the wait began.
func TestGather(t *testing.T) {
	datadriven.RunTest(t, "testdata/gather.txt", func(t *testing.T, d *datadriven.TestData) string {
		var sweep, changed string
		var comes []string
		d.ScanArgs(t, "sweep", &sweep)
		d.ScanArgs(t, "changed", &changed)
		if arg, ok := d.Arg("comes"); ok {
			comes = arg.Vals
		}
		g := newGathering(!d.HasArg("off"))
		c := &clock{time.Unix(1000, 0)}
		begin := c.at
		g.now = func() time.Time { return c.at }
		var log strings.Builder
		g.after = func(d time.Duration) <-chan time.Time {
			if len(comes) > 0 {
				if in := begin.Add(duration(t, comes[0])).Sub(c.at); in < d {
					comes = comes[1:]
					c.at = c.at.Add(in)
					g.changed(c.at)
					return nil
				}
			}
			fmt.Fprintf(&log, "%v of quiet\n", d)
			c.at = c.at.Add(d)
			done := make(chan time.Time, 1)
			done <- c.at
			return done
		}
		g.sweep(duration(t, sweep))
		g.last = begin.Add(-duration(t, changed))
		var lock sync.Mutex
		lock.Lock()
		g.wait(&lock)
		lock.Unlock()
		return fmt.Sprintf("%sthe sweep begins after %v; %d waits of %v\n", log.String(), c.at.Sub(begin), g.waits, g.waited)
	})
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
