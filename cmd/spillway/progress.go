package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/report"
)

// progress is a bar on stderr for long work, where stderr is a terminal and --quiet is off. Its
// methods may be called from several goroutines, and on nil.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	label string
	start time.Time
	shown time.Time
}

// newProgress returns nil where nobody would see a bar.
func (s *session) newProgress(label string) *progress {
	f, ok := s.stderr.(*os.File)
	if !ok || s.flags.Quiet || !isTerminal(f) {
		return nil
	}
	return &progress{w: f, label: label, start: time.Now()}
}

// isTerminal reports whether f is a character device that is not the null device.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

// set shows how many of the bytes are done, at most ten times a second.
func (p *progress) set(done, total int64) {
	if p == nil || total <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = now
	fmt.Fprintf(p.w, "\r%s %s %s%s\x1b[K", p.label, report.Bar(float64(done)/float64(total), 24),
		report.Bytes(done)+" of "+report.Bytes(total), p.left(done, total, now))
}

// say shows what is being done where that is not counted in bytes.
func (p *progress) say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = time.Now()
	fmt.Fprintf(p.w, "\r"+format+"\x1b[K", args...)
}

// left estimates the time to go.
func (p *progress) left(done, total int64, now time.Time) string {
	elapsed := now.Sub(p.start).Seconds()
	if elapsed < 1 || done <= 0 {
		return ""
	}
	return ", " + report.Seconds(elapsed/float64(done)*float64(total-done)) + " left"
}

// end removes the bar.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shown.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// loadingTick is how often watchLoading looks.
const loadingTick = 100 * time.Millisecond

// watchLoading shows a bar on a terminal while a model reads its weights for the first time. The
// function that it returns ends that, and may be called again.
func (s *session) watchLoading(o *opened, m *spillway.Model) (end func()) {
	bar := s.newProgress("loading")
	if bar == nil || o.Embedded() {
		return func() {}
	}
	p := m.CurrentPlan()
	return bar.watch(loadingTick, p.PinnedBytes+p.StreamedBytes, func() int64 { return m.IO().Read })
}

// watch shows what done returns until that is the total, or until end is called.
func (p *progress) watch(tick time.Duration, total int64, done func() int64) (end func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		defer p.end()
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for n := done(); n < total; n = done() {
			select {
			case <-stop:
				return
			case <-ticker.C:
				p.set(n, total)
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
}
