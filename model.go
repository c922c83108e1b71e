package spillway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/vfs"
)

// Model is a model that runs. It is safe for concurrent use: requests share steps.
type Model struct {
	*Checkpoint
	planned plan.Request              // what plan answers
	plan    atomic.Pointer[plan.Plan] // changed under the runtime's lock
	options ModelOptions
	pager   *pager.Pager
	arena   *mem.Buffer
	env     *nn.Env
	cache   *kv.Cache
	engine  *engine.Engine
	forms   forms
	trace   *tracer // nil for none
	loaded  time.Duration
	// identity names the weights where requests share the cache's blocks; empty: they do not.
	identity string
	owned    bool  // the checkpoint goes with the model
	added    int64 // bytes that the model added to the runtime pool
	closed   bool  // guarded by the runtime's lock
	users    sync.WaitGroup
}

// Open loads a model and starts it: Load and Start in one, and Close closes both. Errors are those of
// Load and Start.
func (rt *Runtime) Open(ctx context.Context, path string, o ModelOptions) (*Model, error) {
	c, err := rt.Load(ctx, path)
	if err != nil {
		return nil, err
	}
	return c.owned(c.Start(ctx, o))
}

// OpenEmbedded is Open for the Storyteller model inside the binary.
func (rt *Runtime) OpenEmbedded(ctx context.Context, o ModelOptions) (*Model, error) {
	c, err := rt.LoadEmbedded(ctx)
	if err != nil {
		return nil, err
	}
	return c.owned(c.Start(ctx, o))
}

// owned makes the checkpoint go with the model.
func (c *Checkpoint) owned(m *Model, err error) (*Model, error) {
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	m.owned = true
	return m, nil
}

// Start plans, leases the memory, and makes the model ready to answer. Weights are read as the first
// sweep needs them. It fails with a *TooSmallError, before anything is leased, when the memory does
// not do; beside other models, what they were promised is not available.
func (c *Checkpoint) Start(ctx context.Context, o ModelOptions) (*Model, error) {
	begin := time.Now()
	o = o.withDefaults(c)
	c.rt.mu.Lock()
	defer c.rt.mu.Unlock()
	if c.rt.closed {
		return nil, fmt.Errorf("the runtime is %w", ErrClosed)
	}
	r, err := c.planRequest(o)
	if err != nil {
		return nil, err
	}
	p, log, err := o.planLogged(r)
	if err == nil && c.lacking() > 0 {
		err = c.tokErr
	}
	if err != nil {
		return nil, c.rt.beside(err)
	}
	m := &Model{Checkpoint: c, planned: r, options: o}
	m.plan.Store(p)
	if err := c.rt.begin(m); err != nil {
		return nil, errors.Join(err, c.rt.end(m))
	}
	if err := m.start(ctx, log); err != nil {
		return nil, errors.Join(err, m.free(), c.rt.end(m))
	}
	m.loaded = time.Since(begin)
	c.rt.open = append(c.rt.open, m)
	return m, nil
}

// start leases what the plan says, and so many bytes for a log of experts.
func (m *Model) start(ctx context.Context, log int64) error {
	p := m.CurrentPlan()
	rows, heads := m.rows(p)
	shape, err := m.shape(m.options)
	if err != nil {
		return err
	}
	if m.cache, err = kv.New(m.rt.ledger, shape, p.Pools[budget.KV]); err != nil {
		return err
	}
	if m.options.Shared {
		m.cache.Yield(shape.Bytes(m.options.Context))
		if m.identity, err = m.cat.Identity(ctx); err != nil {
			return err
		}
	}
	if m.arena, err = m.newArena(p); err != nil {
		return err
	}
	if m.pager, err = m.newPager(ctx, p); err != nil {
		return err
	}
	m.env = &nn.Env{Pool: m.rt.pool, Pager: m.pager, Arena: mem.NewArena(m.arena), Exact: m.options.Exact, Context: m.options.Context}
	if err := m.startLog(log); err != nil {
		return err
	}
	if m.env.Routing, err = m.routing(); err != nil {
		return err
	}
	m.engine = engine.New(engine.Config{
		Model: m.model, Cache: m.cache, Rows: rows, HeadRows: heads, Context: m.options.Context, Sequences: m.options.Sequences, Env: m.env,
		Ledger: m.rt.ledger, Queue: m.options.Queue, Identity: m.identity, Streams: !p.Resident,
	})
	if m.options.Shared || m.options.Edited {
		return m.engine.PrepareSampling()
	}
	return nil
}

// rows is how many rows a step has at most by a plan, and how many of them reach the head.
func (m *Model) rows(p *plan.Plan) (rows, heads int) {
	return p.Chunk, min(m.options.HeadRows, p.Chunk)
}

// newArena is scratch for the steps of a plan.
func (m *Model) newArena(p *plan.Plan) (*mem.Buffer, error) {
	rows, heads := m.rows(p)
	n := m.model.ScratchBytes(nn.Scratch{Rows: rows, HeadRows: heads, Context: m.options.Context, Threads: m.rt.threads, Exact: m.options.Exact})
	return mem.New(m.rt.ledger, budget.Activation, n, "scratch of the forward pass")
}

// newPager starts to read the weights as a plan says.
func (m *Model) newPager(ctx context.Context, p *plan.Plan) (*pager.Pager, error) {
	guess, err := m.options.prediction()
	if err != nil {
		return nil, err
	}
	files := make([]vfs.File, len(m.cat.Files))
	for i := range files {
		files[i] = m.cat.Files[i].File
	}
	return pager.Open(ctx, pager.Config{
		Model: m.model.Layout, Placement: p.Placement, Files: append(files, m.cat.Views...), Ledger: m.rt.ledger, Policy: m.options.Policy, Profile: m.options.Profile,
		Prediction: guess,
	})
}

// Close ends all requests, waits for the calls that run them, and gives back everything that the model
// holds. Conversations must be closed before. A call from inside a callback would wait for itself. A
// second Close returns ErrClosed.
func (m *Model) Close() error {
	if !m.rt.closing(m) {
		return errModelClosed
	}
	m.engine.Close()
	m.users.Wait()
	err := errors.Join(m.free(), m.rt.gone(m), m.trace.close())
	if m.owned {
		err = errors.Join(err, m.Checkpoint.Close())
	}
	return err
}

var errModelClosed = fmt.Errorf("the model is %w", ErrClosed)

// enter keeps what the model holds until leave; it fails once the model is closed.
func (m *Model) enter() (leave func(), err error) {
	m.rt.mu.Lock()
	defer m.rt.mu.Unlock()
	if m.closed {
		return nil, errModelClosed
	}
	m.users.Add(1)
	return m.users.Done, nil
}

// submit is the engine's, with an error that a caller can tell.
func (m *Model) submit(ctx context.Context, r engine.Request) (*engine.Stream, error) {
	s, err := m.engine.Submit(ctx, r)
	if errors.Is(err, engine.ErrClosed) {
		err = errModelClosed
	}
	return s, err
}

func (m *Model) free() error {
	var err error
	if m.engine != nil {
		m.engine.Close()
	}
	if m.pager != nil {
		err = m.pager.Close()
	}
	err = errors.Join(err, m.forms.free())
	if m.arena != nil {
		err = errors.Join(err, m.arena.Free())
	}
	if m.cache != nil {
		err = errors.Join(err, m.cache.Close())
	}
	return err
}

// CurrentPlan is the plan that the model runs by. Runtime.SetMemory changes it.
func (m *Model) CurrentPlan() *plan.Plan { return m.plan.Load() }

// LoadTime is what Start took.
func (m *Model) LoadTime() time.Duration { return m.loaded }

// Options are the options that the model runs with, defaults filled in.
func (m *Model) Options() ModelOptions { return m.options }

// IO counts what the model's weights cost since Start.
func (m *Model) IO() pager.Stats { return m.pager.Stats() }

// Counters count what the engine did since Start.
func (m *Model) Counters() engine.Counters { return m.engine.Counters() }

// ISA names the instruction set that computes: "avx2" or "go". Results do not depend on it.
func ISA() string { return kernel.ISA() }
