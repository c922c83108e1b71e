package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// spins is how often a thread looks for work, or for the end of it, before it sleeps: some tens of
// microseconds, longer than the pauses between two products of a layer.
const spins = 4000

// Pool runs tasks on a fixed set of threads. Several goroutines may call Run; their jobs run one
// after the other. A task must not call Run of its own pool.
type Pool struct {
	mu      sync.Mutex // held for a whole job
	workers []*poolWorker
	ended   sync.WaitGroup
	closed  atomic.Bool

	// The job. f and n are written before left and read only by whoever took a task from left.
	f    func(worker, task int)
	n    int
	left atomic.Int64 // tasks not yet taken
	done atomic.Int64 // tasks finished

	waiting atomic.Bool // the caller sleeps until the last task is done
	joined  chan struct{}
	failure atomic.Pointer[poolPanic]
}

type poolPanic struct{ value any }

// poolWorker is a thread other than the caller's. Whoever turns asleep to false sends one wake.
type poolWorker struct {
	asleep atomic.Bool
	wake   chan struct{}
}

// NewPool returns a pool of the given number of threads, at least 1. The goroutine that calls Run is
// worker 0; the others are goroutines of their own, each locked to an operating system thread.
func NewPool(threads int) *Pool {
	p := &Pool{joined: make(chan struct{}, 1)}
	for i := 1; i < threads; i++ {
		w := &poolWorker{wake: make(chan struct{}, 1)}
		p.workers = append(p.workers, w)
		p.ended.Add(1)
		go p.serve(w, i)
	}
	return p
}

// Threads returns the number of workers, the caller included.
func (p *Pool) Threads() int { return len(p.workers) + 1 }

// Close ends the pool's threads. The pool must not be used afterwards; a second Close does nothing.
func (p *Pool) Close() {
	if p.closed.Swap(true) {
		return
	}
	p.wakeUp(len(p.workers))
	p.ended.Wait()
}

// Run calls f(worker, task) once for every task in [0, n) and returns when all are done. Workers take
// tasks in rising order as they become free. If a task panics the others still run, and then Run
// panics with the first task's value.
func (p *Pool) Run(n int, f func(worker, task int)) {
	if n <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.f, p.n = f, n
	p.done.Store(0)
	p.left.Store(int64(n))
	p.wakeUp(n - 1)
	for p.step(0) {
	}
	p.join()
	p.f = nil
	if failed := p.failure.Swap(nil); failed != nil {
		panic(failed.value)
	}
}

// step takes and runs one task; false if none was left.
func (p *Pool) step(worker int) bool {
	for {
		left := p.left.Load()
		if left <= 0 {
			return false
		}
		if p.left.CompareAndSwap(left, left-1) {
			n := p.n // before done: then the next job may begin
			p.call(worker, n-int(left))
			if p.done.Add(1) == int64(n) && p.waiting.CompareAndSwap(true, false) {
				p.joined <- struct{}{}
			}
			return true
		}
	}
}

func (p *Pool) call(worker, task int) {
	defer func() {
		if v := recover(); v != nil {
			p.failure.CompareAndSwap(nil, &poolPanic{v})
		}
	}()
	p.f(worker, task)
}

// join waits until every task is done: it looks for a while, then sleeps. A worker that was late in
// the job before may wake it early.
func (p *Pool) join() {
	n := int64(p.n)
	for range spins {
		if p.done.Load() == n {
			return
		}
		pause()
	}
	for p.done.Load() != n {
		p.waiting.Store(true)
		if p.done.Load() == n && p.waiting.CompareAndSwap(true, false) {
			return
		}
		<-p.joined
	}
}

func (p *Pool) serve(w *poolWorker, id int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer p.ended.Done()
	for !p.closed.Load() {
		if p.step(id) {
			continue
		}
		if !p.look() {
			w.sleep(p)
		}
	}
}

// look waits a while for work; false if there is none.
func (p *Pool) look() bool {
	for range spins {
		if p.left.Load() > 0 || p.closed.Load() {
			return true
		}
		pause()
	}
	return false
}

func (w *poolWorker) sleep(p *Pool) {
	w.asleep.Store(true)
	if (p.left.Load() > 0 || p.closed.Load()) && w.asleep.CompareAndSwap(true, false) {
		return
	}
	<-w.wake
}

// wakeUp wakes up to n of the workers that sleep.
func (p *Pool) wakeUp(n int) {
	for i := 0; i < len(p.workers) && i < n; i++ {
		if w := p.workers[i]; w.asleep.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
}
