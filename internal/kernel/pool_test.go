package kernel

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestPoolRunsEveryTaskOnce(t *testing.T) {
	for threads := 1; threads <= 4; threads++ {
		p := NewPool(threads)
		for n := range 70 {
			counts := make([]atomic.Int32, n)
			p.Run(n, func(worker, task int) {
				if worker < 0 || worker >= threads {
					t.Errorf("worker %d of %d", worker, threads)
				}
				counts[task].Add(1)
			})
			for i := range counts {
				if got := counts[i].Load(); got != 1 {
					t.Fatalf("%d threads, %d tasks: task %d ran %d times", threads, n, i, got)
				}
			}
		}
		p.Close()
		p.Close()
	}
	goleak.VerifyNone(t)
}

// Plain variables written by tasks are visible to the caller, and a worker has no two tasks at once.
func TestPoolOrdersMemory(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	perWorker := make([]int, 3)
	for round := 1; round <= 3000; round++ {
		p.Run(7, func(worker, _ int) { perWorker[worker]++ })
		if round%500 == 0 {
			time.Sleep(2 * time.Millisecond) // so that workers fall asleep
		}
		sum := 0
		for _, n := range perWorker {
			sum += n
		}
		if sum != 7*round {
			t.Fatalf("round %d: %d tasks", round, sum)
		}
	}
}

func TestPoolSharedByCallers(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var total atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 200 {
				p.Run(5, func(_, _ int) { total.Add(1) })
			}
		})
	}
	callers.Wait()
	if total.Load() != 4*200*5 {
		t.Fatalf("%d tasks", total.Load())
	}
}

func TestPoolPanicReachesCaller(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var ran atomic.Int32
	func() {
		defer func() {
			if v := recover(); v != "task 3" {
				t.Errorf("recovered %v", v)
			}
		}()
		p.Run(10, func(_, task int) {
			ran.Add(1)
			if task == 3 {
				panic("task 3")
			}
		})
		t.Error("no panic")
	}()
	if ran.Load() != 10 {
		t.Errorf("%d tasks ran", ran.Load())
	}
	p.Run(4, func(_, _ int) { ran.Add(1) })
	if ran.Load() != 14 {
		t.Error("the pool does not work after a panic")
	}
}

func TestPoolRunAllocatesNothing(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var n atomic.Int64
	f := func(_, _ int) { n.Add(1) }
	if a := testing.AllocsPerRun(200, func() { p.Run(16, f) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

func BenchmarkPoolRun(b *testing.B) {
	p := NewPool(2)
	defer p.Close()
	var n atomic.Int64
	f := func(_, _ int) { n.Add(1) }
	for b.Loop() {
		p.Run(2, f)
	}
}
