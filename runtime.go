package spillway

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/storyteller"
	"github.com/spillway/spillway/internal/vfs"
)

// Options shape a Runtime. A runtime owns the process: it sets GOMAXPROCS to the compute threads and a
// few more, and while models are open the Go runtime's memory limit, so that the Go heap of the whole
// program may grow by about 2 MiB beyond what it was when the first model started. Close restores
// both.
type Options struct {
	// Memory is the hard cap for the whole process in bytes; 0 is what `--memory auto` means.
	Memory int64
	// Threads is the number of compute threads; 0 is the physical cores that the process may use.
	Threads int
	// Files is where models are read from; nil is the system's file system. Tests let things go wrong in it.
	Files vfs.FS
}

// Runtime owns what models share: the budget, the compute threads and the file system. It is safe
// for concurrent use.
type Runtime struct {
	limit   int64
	threads int
	ledger  *budget.Ledger
	pool    *kernel.Pool
	fs      vfs.FS

	processors int   // GOMAXPROCS and
	heapLimit  int64 // the memory limit before

	mu     sync.Mutex
	own    *budget.Lease // the runtime pool, while models are open
	models int
	open   []*Model // those that run, in the order of their starts
	heap   int64    // bytes of the Go heap when the limit for it was set last
	lent   int64    // of the runtime pool, by Reserve
	aside  aside    // of lent
	tables int64    // likewise, for what models keep on the heap beyond what every one does
	closed bool
}

// New returns a runtime. Close it when its models are closed.
func New(o Options) (*Runtime, error) {
	if err := kernel.EnvError(); err != nil {
		return nil, err
	}
	if o.Memory < 0 || o.Threads < 0 {
		return nil, fmt.Errorf("a memory of %d bytes and %d threads are not possible", o.Memory, o.Threads)
	}
	if most := MaxThreads(); o.Threads > most {
		return nil, fmt.Errorf("%d threads are more than the %d that this machine is good for", o.Threads, most)
	}
	if o.Memory == 0 {
		m, err := machine.ReadMemory()
		if err != nil {
			return nil, fmt.Errorf("memory auto: %w: give --memory", err)
		}
		o.Memory = max(m.Auto(), 0)
	}
	if o.Threads == 0 {
		o.Threads = machine.PhysicalCores()
	}
	// A read that returns must not wait for a busy compute thread, so there are processors besides
	// those of the compute threads; a few will do, since a reader needs one for microseconds only, and
	// each costs memory and a share of a garbage collector. They are set before anything is measured.
	// What the program's own start has read of its file is charged to us; most of it has had its time.
	if err := machine.TrimBinary(); err != nil {
		return nil, fmt.Errorf("giving back the page cache of the program: %w", err)
	}
	if o.Files == nil {
		o.Files = vfs.OS()
	}
	processors := runtime.GOMAXPROCS(o.Threads + spareProcessors)
	return &Runtime{
		processors: processors, heapLimit: debug.SetMemoryLimit(-1),
		limit: o.Memory, threads: o.Threads, fs: o.Files, pool: kernel.NewPool(o.Threads),
		// The limit holds from the first plan on: what is loaded before (the tokenizer) is counted in
		// it, so that a budget that is too small is refused with the one that would do.
		ledger: budget.New(math.MaxInt64 / 4),
	}, nil
}

// MaxThreads is the most compute threads that New accepts: more than help anywhere, and few enough
// for the limits of the operating system.
func MaxThreads() int { return max(64, 4*runtime.NumCPU()) }

// Memory is the hard cap in bytes.
func (rt *Runtime) Memory() int64 {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.limit
}

// Threads is the number of compute threads.
func (rt *Runtime) Threads() int { return rt.threads }

// Ledger returns what is leased now and was at most.
func (rt *Runtime) Ledger() budget.Usage { return rt.ledger.Snapshot() }

// Close frees the runtime. It fails while models are open; a second Close returns ErrClosed.
func (rt *Runtime) Close() error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.models > 0 {
		return fmt.Errorf("%d models are still open", rt.models)
	}
	if rt.closed {
		return fmt.Errorf("the runtime is %w", ErrClosed)
	}
	rt.closed = true
	rt.pool.Close()
	debug.SetMemoryLimit(rt.heapLimit)
	runtime.GOMAXPROCS(rt.processors)
	return nil
}

const (
	heapGrowth      = 5 << 19   // what the Go heap may add to what is live when a model starts
	heapReserve     = 256 << 10 // of it for what the Go runtime's own limit overshoots
	perProcessor    = 256 << 10 // charge batches of the kernel and caches of the Go runtime
	perThread       = 24 << 10  // kernel stack and descriptors
	spareProcessors = 4
	ioThreads       = 12 // the most that the pager reads with

	startAnon     = 4 << 20 // what a process has before it plans, beside its binary
	trimmedBinary = 5 << 20 // pages of a trimmed binary that a run comes to touch
	// What a small program measures moves from run to run; below these values it does not count, so that
	// the least that one run names is the least that the next one takes.
	leastAnon   = 5 << 19
	leastTables = 192 << 10
)

// measure returns what the process needs beside what is leased for weights, cache and scratch: the
// heap that is live now with room to grow, stacks, the binary, and what is leased in the runtime pool.
func (rt *Runtime) measure(embedded bool) int64 {
	debug.FreeOSMemory()
	leased := rt.ledger.Snapshot().Pools[budget.Runtime].Used
	if rt.own != nil { // what was measured then, and what came since
		grown := max(goBytes()-rt.heap, 0)
		if embedded {
			grown += storyteller.Size()
		}
		return leased + grown
	}
	return rt.resident(embedded) + leased + heapGrowth + int64(min(runtime.NumCPU(), rt.threads+spareProcessors+ioThreads))*perProcessor +
		int64(rt.threads+spareProcessors)*perThread
}

// resident is the process without off-heap buffers. Of a binary that was not trimmed every page
// counts: what was read ahead is charged to us, mapped or not, and the embedded model will be read.
func (rt *Runtime) resident(embedded bool) int64 {
	p, ok := machine.ReadProcess()
	if !ok {
		return goBytes() + machine.BinaryBytes()
	}
	binary := int64(trimmedBinary)
	if embedded {
		binary = max(p.File, machine.BinaryBytes())
	}
	return max(p.Anon-mem.Live(), leastAnon) + binary + max(p.PageTables, leastTables)
}

// Drift is the operating system's count of the process's memory less what the ledger has leased:
// above 0 something was not planned for. ok is false where the system does not tell, and while no
// model is open.
func (rt *Runtime) Drift() (bytes int64, ok bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	p, ok := machine.ReadProcess()
	if !ok || rt.own == nil {
		return 0, false
	}
	return p.RSS + p.PageTables - rt.ledger.Snapshot().Used, true
}

// goBytes is what the Go runtime holds, as its memory limit counts it.
func goBytes() int64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.Sys - s.HeapReleased)
}

// limitHeap tells the Go runtime what the plan leaves to it.
func (rt *Runtime) limitHeap() {
	rt.heap = max(rt.heap, goBytes())
	rt.setHeapLimit()
}

func (rt *Runtime) setHeapLimit() {
	debug.SetMemoryLimit(rt.heap + heapGrowth - heapReserve + rt.lent + rt.tables)
}

// Reserve leases n bytes for what is about to be put on the Go heap, such as a long prompt, and lets
// the heap grow by as much until release is called. When they do not fit it fails with a
// *budget.NoRoomError; before a model was planned the process as it is now counts, too.
func (rt *Runtime) Reserve(n int64, what string) (release func(), err error) {
	_, release, err = rt.lend(n, what)
	return release, err
}

// lend is Reserve, with the lease.
func (rt *Runtime) lend(n int64, what string) (lease *budget.Lease, release func(), err error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch {
	case rt.closed:
		return nil, nil, fmt.Errorf("the runtime is %w", ErrClosed)
	case n < 0:
		return nil, nil, fmt.Errorf("%d bytes for %s are not possible", n, what)
	}
	if rt.own == nil {
		if err := rt.roomBeforePlan(n, what); err != nil {
			return nil, nil, err
		}
	}
	lease, err = rt.ledger.Reserve(budget.Runtime, n, what)
	if err != nil {
		return nil, nil, err
	}
	if rt.own == nil && rt.lent == 0 {
		rt.heap = goBytes()
	}
	rt.lent += n
	rt.setHeapLimit()
	return lease, sync.OnceFunc(func() { rt.giveBack(lease) }), nil
}

// roomBeforePlan checks that n more bytes of heap fit beside the process, for which the ledger has no
// lease yet. The lock is held.
func (rt *Runtime) roomBeforePlan(n int64, what string) error {
	used := rt.measure(false)
	u := rt.ledger.Snapshot()
	used += u.Used - u.Pools[budget.Runtime].Used
	if rt.lent > 0 { // the heap has grown under earlier leases, which count in full
		used -= min(max(goBytes()-rt.heap, 0), rt.lent)
	}
	if n > rt.limit-used {
		return &budget.NoRoomError{Pool: budget.Runtime, What: what, Asked: n, Free: rt.limit - used, Limit: rt.limit}
	}
	return nil
}

// giveBack ends a lease of Reserve.
func (rt *Runtime) giveBack(lease *budget.Lease) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.lent -= lease.Bytes()
	if err := lease.Release(); err != nil {
		panic(err) // nobody else has the lease
	}
	switch {
	case rt.own != nil:
		rt.setHeapLimit()
	case rt.lent == 0:
		rt.heap = 0
		debug.SetMemoryLimit(rt.heapLimit)
	}
}
