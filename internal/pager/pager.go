// Package pager treats weights as virtual memory: what a placement pins stays in memory once it was
// read, the rest streams through a ring of slots ahead of its use, in the order of the sweep and on
// into the next one. Reads are direct, large and several at once, by a fixed set of readers.
package pager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/policy"
	"github.com/spillway/spillway/internal/vfs"
)

// A madeFile puts what it returns together from other files, in scratch memory of who reads.
type madeFile interface {
	ReadWith(p []byte, off int64, scratch []byte) (int, error)
}

// readAt reads from a file, with the scratch of reader i if it needs some.
func (p *Pager) readAt(file int, b []byte, off int64, i int) (int, error) {
	if f, ok := p.files[file].(madeFile); ok {
		size := p.place.ScratchBytes()
		return f.ReadWith(b, off, p.scratch[int64(i)*size:][:size])
	}
	return p.files[file].ReadAt(b, off)
}

// ErrClosed is what a closed pager answers.
var ErrClosed = errors.New("pager: closed")

// Config is what a pager needs.
type Config struct {
	Model     *layout.Model
	Placement *layout.Placement // from the planner, for this model
	Files     []vfs.File        // by Matrix.File; they stay open until Close has returned
	Ledger    *budget.Ledger
	Policy    string  // which experts stay in memory; empty is policy.Default
	Profile   []int64 // for the policy static, see policy.New
	// Prediction of experts; PredictAuto is the default.
	Prediction Prediction
}

// Pager owns the weights of one model. One sweep runs at a time, driven by one goroutine; Rows,
// Vector and Stats can be called by others meanwhile.
type Pager struct {
	model   *layout.Model
	place   *layout.Placement
	files   []vfs.File
	profile []int64          // for the rule static
	rule    string           // which experts stay
	order   []*layout.Matrix // of the sweep
	kind    []kinds          // of each of them
	parts   [][]piece        // by Matrix.ID, in rising row order

	ledger  *budget.Ledger
	memory  memory
	vectors [][]float32 // by Vector.ID
	lookups []byte      // one look-up buffer for each reader, the last one for the caller
	scratch []byte      // likewise, for files that put their content together

	readers    sync.WaitGroup
	alive      []bool // by reader; guarded by mu
	unregister func()
	looking    sync.Mutex // one Rows at a time
	look       lookup

	mu      sync.Mutex
	work    sync.Cond     // readers wait here
	arrived chan struct{} // wakes the one that waits for a read
	waiting bool
	closed  bool
	broken  error // of a change of the placement
	moving  bool  // the placement changes: nothing is read
	growing bool  // slots get their memory
	mapping bool  // part of it is mapped now, without the lock
	started bool  // a sweep has begun: none waits for experts that it does not need
	pausing bool  // they get no more before the next sweep: others need it
	rested  sync.Cond

	units   []unit
	slots   []slot
	cursor  cursor
	load    int    // units before this one have all their requests issued, if they are pinned
	again   bool   // something may wait for a second try
	sweep   uint64 // the number of the sweep that runs, or comes next
	running *Sweep
	batch   *lookup // that readers shall help with
	flying  int     // reads in flight
	since   time.Time
	stats   Stats

	experts experts
}

// piece is the rows of a matrix that lie in one unit.
type piece struct {
	unit   int
	part   layout.Part
	offset int64 // in the unit
}

// Open leases and maps what the placement says, reads and decodes the vectors, and starts reading
// ahead for the first sweep. The leases last until Close.
func Open(ctx context.Context, c Config) (*Pager, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &Pager{
		model: c.Model, place: c.Placement, files: c.Files, arrived: make(chan struct{}, 1),
	}
	p.ledger = c.Ledger
	p.work.L, p.rested.L = &p.mu, &p.mu
	p.rule = cmp.Or(c.Policy, policy.Default)
	p.profile = c.Profile
	p.experts.guess.mode = c.Prediction
	p.index()
	err := p.indexExperts()
	if err == nil {
		err = p.reserve(c.Ledger)
	}
	if err == nil {
		err = p.readVectors(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.free())
	}
	p.mu.Lock()
	// Slots come first: what is read while some are missing displaces what is needed again, and is read twice.
	p.startGrowing()
	for p.growing && ctx.Err() == nil {
		p.rested.Wait()
	}
	p.startReaders()
	p.mu.Unlock()
	p.unregister = c.Ledger.Register(holderRank, slotHolder{p})
	return p, nil
}

func (c *Config) check() error {
	if c.Model == nil || c.Placement == nil || c.Ledger == nil {
		return errors.New("pager: a model, a placement and a ledger are needed")
	}
	if err := c.Placement.Check(c.Model); err != nil {
		return err
	}
	for _, f := range c.Files {
		if f.Align() > c.Placement.Align {
			return fmt.Errorf("pager: %s needs requests aligned to %d, planned are %d", f.Name(), f.Align(), c.Placement.Align)
		}
	}
	inFile := func(name string, file int, offset, n int64) error {
		if file < 0 || file >= len(c.Files) {
			return fmt.Errorf("pager: %s is in file %d of %d", name, file, len(c.Files))
		}
		if f := c.Files[file]; offset < 0 || n < 0 || offset > f.Size()-n {
			return fmt.Errorf("%s is truncated: %s needs %d bytes at %d, the file has %d", f.Name(), name, n, offset, f.Size())
		}
		return nil
	}
	for _, x := range c.Model.Matrices {
		if err := inFile(x.Name, x.File, x.Offset, x.Bytes()); err != nil {
			return err
		}
	}
	for i := range c.Model.Experts {
		for k := range c.Model.Experts[i].Stacks {
			s := &c.Model.Experts[i].Stacks[k]
			for _, at := range s.At {
				if err := inFile(s.Name, int(at.File), at.Offset, s.Bytes()); err != nil {
					return err
				}
			}
		}
	}
	for i, v := range c.Model.Vectors {
		if v.ID != i || v.Type.BlockValues() == 0 || v.Len < 1 || v.Len%v.Type.BlockValues() != 0 {
			return fmt.Errorf("pager: vector %s has %d values of %v", v.Name, v.Len, v.Type)
		}
		if err := inFile(v.Name, v.File, v.Offset, int64(v.Type.RowBytes(v.Len))); err != nil {
			return err
		}
	}
	return nil
}

// index finds the pieces of each matrix and their part in the sweep.
func (p *Pager) index() {
	p.order, p.kind = nil, nil
	at := make([]int, len(p.model.Matrices))
	for i := range at {
		at[i] = -1
	}
	for _, b := range p.model.Bundles {
		if b.Kind == layout.Embedding {
			continue
		}
		for _, x := range b.Matrices {
			at[x.ID] = len(p.order)
			p.order, p.kind = append(p.order, x), append(p.kind, 1<<b.Kind)
		}
	}
	p.parts = make([][]piece, len(p.model.Matrices))
	p.units = make([]unit, len(p.place.Units))
	for i := range p.place.Units {
		u := &p.units[i]
		u.Unit = &p.place.Units[i]
		u.last = -1
		for _, part := range u.Parts {
			if i := at[part.Matrix.ID]; i >= 0 {
				u.last = max(u.last, i)
				u.kinds |= p.kind[i]
			}
			p.insert(piece{unit: i, part: part, offset: part.Offset() - u.Offset})
		}
		if u.Pinned {
			u.start, u.end = p.place.Enclosing(u.Offset, u.Bytes)
			u.requests = int((u.end - u.start + p.place.Request - 1) / p.place.Request)
		}
	}
	p.slots = make([]slot, p.place.Slots)
}

func (p *Pager) insert(x piece) {
	list := append(p.parts[x.part.Matrix.ID], x)
	for i := len(list) - 1; i > 0 && list[i-1].part.Row0 > x.part.Row0; i-- {
		list[i-1], list[i] = list[i], list[i-1]
	}
	p.parts[x.part.Matrix.ID] = list
}

func (p *Pager) lookupBuffer(i int) []byte {
	return p.lookups[int64(i)*p.place.LookupBytes:][:p.place.LookupBytes]
}

// Close waits for reads in flight and gives back all memory and leases. It fails while a sweep
// runs, whose tiles would go away. A second Close does nothing.
func (p *Pager) Close() error {
	p.looking.Lock()
	defer p.looking.Unlock()
	p.mu.Lock()
	if p.running != nil {
		p.mu.Unlock()
		return errors.New("pager: a sweep runs; end it before the close")
	}
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.work.Broadcast()
	p.rested.Broadcast()
	p.wake()
	p.mu.Unlock()
	p.readers.Wait()
	p.unregister()
	return p.free()
}
