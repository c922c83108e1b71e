package pool

import (
	"fmt"
	"os"
	"time"

	"github.com/spillway/spillway"
)

const (
	// manyFailures in a row are no accident: a model of which so many answers failed is called broken,
	manyFailures = 3
	// and for so long after the last one. Then it is given another try, for who balances load by that.
	brokenFor = time.Minute
)

// health is what is known of a model's files. The pool's lock guards it.
type health struct {
	files   []stamp
	failed  int64 // reads of the weights, and loads, in all
	inARow  int
	lastBad time.Time
}

// A stamp is a file as it was when its model was loaded.
type stamp struct {
	path string
	info os.FileInfo
}

func stampsOf(m *spillway.Model) (list []stamp) {
	if m.Embedded() {
		return nil
	}
	for i := range m.Catalog().Files {
		path := m.Catalog().Files[i].Path
		if info, err := os.Stat(path); err == nil {
			list = append(list, stamp{path, info})
		}
	}
	return list
}

// changed reports whether one of the files has other bytes now. One that was put in the place of another is not read.
func changed(files []stamp) bool {
	for _, f := range files {
		now, err := os.Stat(f.path)
		if err == nil && os.SameFile(now, f.info) && (now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime())) {
			return true
		}
	}
	return false
}

// Changed reports whether a file of the model has been written to since it was loaded.
func (h *Held) Changed() bool {
	h.pool.mu.Lock()
	files := h.entry.health.files
	h.pool.mu.Unlock()
	return changed(files)
}

// Failed notes that the weights could not be read, or made no sense.
func (h *Held) Failed() {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	h.entry.fail()
}

// Worked notes a good answer.
func (h *Held) Worked() {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	h.entry.health.inARow = 0
}

func (e *entry) fail() {
	e.health.failed++
	e.health.inARow++
	e.health.lastBad = time.Now()
}

// broken says why answers of the model are not to be expected; empty: they are. files are those to look at, without
// the lock.
func (e *entry) broken() (why string, files []stamp) {
	if n := e.health.inARow; n >= manyFailures && time.Since(e.health.lastBad) < brokenFor {
		return fmt.Sprintf("the last %d tries to read its weights failed", n), nil
	}
	if e.model == nil {
		return "", nil
	}
	return "", e.health.files
}

// Broken says of each model that cannot be relied on why that is.
func (p *Pool) Broken() map[string]string {
	all, look := map[string]string{}, map[string][]stamp{}
	p.mu.Lock()
	for _, e := range p.entries {
		if why, files := e.broken(); why != "" {
			all[e.Name] = why
		} else if files != nil {
			look[e.Name] = files
		}
	}
	p.mu.Unlock()
	for name, files := range look {
		if changed(files) {
			all[name] = "its file has been written to since it was loaded"
		}
	}
	return all
}
