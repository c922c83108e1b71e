package spillway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/models"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/policy"
	"github.com/spillway/spillway/internal/storyteller"
	"github.com/spillway/spillway/internal/tokenizer"
)

// Checkpoint is a model on disk: described, with its tokenizer, but without weights in memory.
type Checkpoint struct {
	rt        *Runtime
	cat       *checkpoint.Catalog
	model     *nn.Model
	tok       *tokenizer.Tokenizer
	tokErr    error // why there is no tokenizer; ids still work
	buffers   []*mem.Buffer
	templates *chat.Set
	embedded  bool
	defaults  Defaults
	models    int // that were started and are open; guarded by the runtime's lock
}

// Load reads what a model says about itself: a GGUF file (any shard of a set) or a folder in Hugging
// Face layout. Weights are not read. Close the checkpoint after the models started from it.
func (rt *Runtime) Load(ctx context.Context, path string) (*Checkpoint, error) {
	return rt.load(ctx, false, func() (*checkpoint.Catalog, error) { return checkpoint.Open(rt.fs, path) })
}

// LoadEmbedded is Load for the Storyteller model inside the binary.
func (rt *Runtime) LoadEmbedded(ctx context.Context) (*Checkpoint, error) {
	// It lies in the binary, and all of it will be read.
	if err := machine.UntrimBinary(); err != nil {
		return nil, fmt.Errorf("reading ahead in the program: %w", err)
	}
	return rt.load(ctx, true, func() (*checkpoint.Catalog, error) { return checkpoint.OpenFile(storyteller.File()) })
}

func (rt *Runtime) load(ctx context.Context, embedded bool, open func() (*checkpoint.Catalog, error)) (*Checkpoint, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cat, err := open()
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{rt: rt, cat: cat, embedded: embedded}
	if c.model, err = models.Describe(cat); err == nil {
		c.defaults, err = readDefaults(cat)
	}
	if err == nil {
		c.templates, err = chat.FromCatalog(cat)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if embedded {
		c.defaults.storyteller()
	}
	if c.tok, c.tokErr = tokenizer.Load(cat, c.alloc); c.tokErr == nil {
		c.defaults.end(c.tok)
	} else if err := c.freeTables(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.guessTemplate()
	return c, nil
}

// alloc leases memory for the tokenizer's tables.
func (c *Checkpoint) alloc(n int) ([]byte, error) {
	b, err := mem.New(c.rt.ledger, budget.Runtime, n, "tokenizer")
	if err != nil {
		return nil, err
	}
	c.buffers = append(c.buffers, b)
	clear(b.Bytes()) // tests fill fresh memory with nonsense; tables begin empty
	return b.Bytes(), nil
}

// freeTables frees what alloc gave: nothing refers to it where the tokenizer failed to load.
func (c *Checkpoint) freeTables() (err error) {
	for _, b := range c.buffers {
		err = errors.Join(err, b.Free())
	}
	c.buffers = nil
	return err
}

// Close closes the files and frees the tokenizer. It fails while models started from it are open.
func (c *Checkpoint) Close() error {
	c.rt.mu.Lock()
	defer c.rt.mu.Unlock()
	if c.models > 0 {
		return fmt.Errorf("%d models of %s are still open", c.models, c.Name())
	}
	err := c.cat.Close()
	err = errors.Join(err, c.freeTables())
	c.tok, c.tokErr = nil, fmt.Errorf("the checkpoint is %w", ErrClosed)
	return err
}

// Catalog is what the files hold.
func (c *Checkpoint) Catalog() *checkpoint.Catalog { return c.cat }

// Layout is the model as plain data.
func (c *Checkpoint) Layout() *layout.Model { return c.model.Layout }

// Embedded reports whether the model is the one inside the binary.
func (c *Checkpoint) Embedded() bool { return c.embedded }

// Embedding reports whether the model gives vectors instead of text.
func (c *Checkpoint) Embedding() bool { return c.model.Pooling() != nn.PoolNone }

// TapNames lists the intermediate values that a probe can write.
func (c *Checkpoint) TapNames() []string { return c.model.TapNames() }

// Name is what people call the model: general.name, or the file's or folder's name.
func (c *Checkpoint) Name() string {
	if c.embedded {
		return storyteller.Name
	}
	if name, ok := c.cat.Meta.String("general.name"); ok && name != "" {
		return strings.ToValidUTF8(name, "\uFFFD")
	}
	base := filepath.Base(c.cat.Path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// Source is the path that was loaded, or "embedded".
func (c *Checkpoint) Source() string {
	if c.embedded {
		return "embedded"
	}
	return c.cat.Path
}

// Tokenizer returns the model's tokenizer, or says why there is none.
func (c *Checkpoint) Tokenizer() (*tokenizer.Tokenizer, error) {
	if c.tokErr != nil {
		return nil, fmt.Errorf("no tokenizer: %w", c.tokErr)
	}
	return c.tok, nil
}

// ModelOptions shape a model that runs.
type ModelOptions struct {
	Context   int // most tokens of a sequence; 0 is the trained limit
	Sequences int // that run at once at most; 0 is 1
	HeadRows  int // rows of a step whose logits are wanted at most; 0 is Sequences
	Chunk     int // most rows of a step; 0 is 512. It never changes a result
	// Queue is how many requests may wait for a seat; one more is refused with a *QueueFullError. 0: any number.
	Queue int
	// Shared makes the sequences share one pool of cache blocks instead of a whole context each: room for
	// one full context, and beyond that a share of the memory. Sequences that outgrow it take turns.
	Shared bool
	// Edited plans for requests that change logits before a token is chosen, by a Constraint, penalties or biases. Without it, and
	// without Shared, the memory for that is what is left.
	Edited bool
	// Memory bounds what this model may plan with, in bytes, so that several can share a budget; 0: all that is
	// left.
	Memory int64
	Exact  bool // quantized weights are decoded to f32, and the cache is f32
	// KV is the type of the key-value cache: f32, f16 (the default), bf16, q8_0 or fp8. The last three are
	// lossy: results are other ones than with f16, if the same ones at every budget.
	KV string
	// Trace receives which experts every step chooses, for `spillway trace`; nil for none. A model that starts closes it when it is closed. One
	// without experts does not start with it.
	Trace io.WriteCloser
	// ExpertLog logs which experts steps need, for what had to be read; nil: none. It takes a little of what slots of experts would have, and
	// is given up when the memory changes. It never changes a result.
	ExpertLog *ExpertLog
	// Policy is which experts stay in memory: adaptive (the default), lru, lfu or static. It never changes a result.
	Policy string
	// Prediction is whether experts that a layer will probably need are read while the drive is idle: auto (the default; until
	// it measures as a loss), on or off. It never changes a result.
	Prediction string
	// Profile is which experts the policy static keeps: how often each was chosen, by layer with experts × experts of a
	// layer + expert.
	Profile []int64
}

func (o ModelOptions) withDefaults(c *Checkpoint) ModelOptions {
	if o.Context <= 0 {
		o.Context = c.model.Layout.Context
	}
	// Far beyond any machine; products of sizes stay within 64 bits.
	o.Context, o.Sequences = min(o.Context, 1<<28), min(max(o.Sequences, 1), 1<<12)
	o.HeadRows, o.Chunk = min(o.HeadRows, 1<<16), min(o.Chunk, 1<<16)
	o.HeadRows = max(o.HeadRows, o.Sequences)
	o.Policy = cmp.Or(o.Policy, policy.Default)
	if o.Chunk <= 0 {
		o.Chunk = 512
	}
	o.Chunk = max(o.Chunk, o.Sequences)
	return o
}

// CacheTypeError says that the key-value cache cannot be of the type that ModelOptions.KV names.
type CacheTypeError struct{ What string }

func (e *CacheTypeError) Error() string { return e.What }

// cacheType is what the options' KV means.
func (o ModelOptions) cacheType() (kernel.CacheType, error) {
	if o.KV == "" {
		if o.Exact {
			return kernel.CacheF32, nil
		}
		return kernel.CacheF16, nil
	}
	t, err := kernel.ParseCacheType(o.KV)
	switch {
	case err != nil:
		return t, &CacheTypeError{err.Error()}
	case o.Exact && t != kernel.CacheF32:
		return t, &CacheTypeError{fmt.Sprintf("the exact path keeps its cache in f32, not %s", t)}
	}
	return t, nil
}

// CacheType is the type of the key-value cache, and whether it rounds more than f16; the type is empty if
// KV makes no sense.
func (o ModelOptions) CacheType() (name string, lossy bool) {
	t, err := o.cacheType()
	if err != nil {
		return "", false
	}
	return t.String(), t.Lossy()
}

// shape is what one token leaves in the cache.
func (c *Checkpoint) shape(o ModelOptions) (kv.Shape, error) {
	t, err := o.cacheType()
	if err != nil {
		return kv.Shape{}, err
	}
	for i, l := range c.model.Cache {
		for _, dim := range []int{l.KDim, l.VDim} {
			if n := t.BlockValues(); dim%n != 0 {
				others := slices.DeleteFunc(kernel.CacheTypeNames(), func(name string) bool { return name == t.String() })
				return kv.Shape{}, &CacheTypeError{fmt.Sprintf("a cache in %s holds blocks of %d values, and the heads of layer %d have %d; choose another type (%s)",
					t, n, i, dim, strings.Join(others, ", "))}
			}
		}
	}
	return kv.Shape{Layers: c.model.Cache, Type: t}, nil
}

// Plan says what would go where. It fails with a *TooSmallError when the memory does not do.
func (c *Checkpoint) Plan(o ModelOptions) (*plan.Plan, error) {
	c.rt.mu.Lock()
	defer c.rt.mu.Unlock()
	return c.plan(o)
}

// plan is Plan with the runtime's lock held.
func (c *Checkpoint) plan(o ModelOptions) (*plan.Plan, error) {
	r, err := c.planRequest(o)
	if err != nil {
		return nil, err
	}
	return plan.Make(r)
}

// planRequest is what to plan for. The runtime's lock is held.
func (c *Checkpoint) planRequest(o ModelOptions) (plan.Request, error) {
	if err := c.checkTypes(); err != nil {
		return plan.Request{}, err
	}
	o = o.withDefaults(c)
	rt := c.rt
	start := int64(0)
	if rt.own == nil {
		start = coldStart()
	}
	shape, err := c.shape(o)
	if err != nil {
		return plan.Request{}, err
	}
	align, readCache := 1, int64(0)
	for _, f := range c.cat.Files {
		align = max(align, f.Align())
		if !f.Direct() && !c.embedded {
			readCache = bufferedRead
		}
	}
	if align > 1 { // drives take requests that do not begin at a page of memory, and are a quarter slower
		align = max(align, os.Getpagesize())
	}
	budget, chunk := rt.left(), o.Chunk
	if o.Memory > 0 {
		budget = min(budget, o.Memory)
	}
	fixed := c.model.PlanScratch(nn.Scratch{Context: o.Context, Threads: rt.threads, Exact: o.Exact})
	if o.Shared {
		chunk += o.Sequences
	}
	if o.Shared || o.Edited {
		fixed += engine.SamplingBytes(c.model.Layout.Vocab, o.Context, rt.threads)
	}
	return plan.Request{
		Model: c.model.Layout, Budget: budget, Runtime: rt.measure(c.embedded) + c.lacking() + c.heap(o), Start: start,
		KVTokenBytes: int64(shape.BlockBytes()) / kv.BlockTokens, KVBlockTokens: kv.BlockTokens,
		Context: o.Context, Sequences: o.Sequences, Shared: o.Shared, HeadRows: o.HeadRows, MaxChunk: chunk, Align: align,
		Page: int64(os.Getpagesize()), ReadCache: readCache,
		FixedScratch: fixed,
	}, nil
}

// heap is what a model takes of the Go heap beyond what every one does.
func (c *Checkpoint) heap(o ModelOptions) int64 {
	n := c.expertTables()
	if o.Shared {
		n += servingHeap + int64(o.Sequences)*sequenceHeap
	}
	return n
}

const (
	// Of many requests: what steps of many segments leave for the next one, streams, stacks.
	servingHeap  = 4 << 20
	sequenceHeap = 96 << 10 // each of them: ids, keys of blocks, decoders, a stack
)

// expertTables is what a model with experts takes of the heap beyond what every model does: their slots, what the
// policy knows of each, and stacks of more readers; 0 without experts.
func (c *Checkpoint) expertTables() int64 {
	const each, all = 128, 1 << 20
	n := int64(0)
	for i := range c.model.Layout.Experts {
		n += each * int64(c.model.Layout.Experts[i].Count())
	}
	if n > 0 {
		n += all
	}
	return n
}

// bufferedRead is the page cache that one read of a file without direct I/O causes for a moment.
const bufferedRead = 256 << 10

// checkTypes reports the first weight that no path can compute with.
func (c *Checkpoint) checkTypes() error {
	i := slices.IndexFunc(c.model.Layout.Matrices, func(m *layout.Matrix) bool { return !kernel.Supported(m.Type) })
	if i < 0 {
		return nil
	}
	m := c.model.Layout.Matrices[i]
	return &checkpoint.FormatError{Path: c.cat.Path, Where: "tensor " + m.Name,
		What: fmt.Sprintf("%s is no format of weights", m.Type), Hint: "its maker should export it in another"}
}

// prediction is what the options' Prediction means.
func (o ModelOptions) prediction() (pager.Prediction, error) {
	switch o.Prediction {
	case "", "auto":
		return pager.PredictAuto, nil
	case "on":
		return pager.PredictAlways, nil
	case "off":
		return pager.PredictNever, nil
	}
	return 0, fmt.Errorf("there is no prediction %q; there are auto, on and off", o.Prediction)
}

// coldStart is what starting the program costs before it plans: the kernel may read all of its file. Tests whose models are
// smaller than the test program set it to nothing.
var coldStart = func() int64 { return machine.BinaryFileBytes() + startAnon }
