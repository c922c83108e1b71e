package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/nn"
)

// board is the state of one text file under testdata/scheduler. Sequences are names; every step takes
// the rows that were planned, and an answer's next token follows at once, as in Engine.choose.
type board struct {
	sched   scheduler
	ledger  *budget.Ledger
	cache   *kv.Cache
	names   map[*sequence]string
	seed    int32 // of the next prompt's tokens
	root    kv.Key
	prompts map[string][]int32
}

func TestScheduler(t *testing.T) {
	datadriven.Walk(t, "testdata/scheduler", func(t *testing.T, path string) {
		b := &board{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				b.new(t, d)
			case "submit":
				return b.submit(t, d)
			case "step":
				return b.steps(t, d)
			case "end":
				b.end(t, b.named(d.CmdArgs[0].Key))
			case "force":
				b.force(t, d)
			case "cache":
				s := b.cache.Stats()
				return fmt.Sprintf("blocks %d, used %d, idle %d, evicted %d; tokens asked %d, found %d; preempted %d\n",
					s.Blocks, s.Used, s.Idle, s.Evictions, s.Queried, s.Hit, b.sched.preempted)
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return b.state()
		})
		b.clear(t)
	})
}

// clear ends everything and fails if something is left.
func (b *board) clear(t *testing.T) {
	for q := range b.names {
		b.end(t, q)
	}
	if s := b.cache.Stats(); s.Used != 0 {
		t.Errorf("%d blocks are in use", s.Used)
	}
	if err := b.cache.Close(); err != nil {
		t.Error(err)
	}
	if used := b.ledger.Snapshot().Used; used != 0 {
		t.Errorf("%d bytes are still leased", used)
	}
}

// new rows=… heads=… blocks=… [seats=…] [streams]: the limits of a step, the blocks of 16 positions that there are,
// whether a step is a sweep.
func (b *board) new(t *testing.T, d *datadriven.TestData) {
	if b.cache != nil {
		b.clear(t)
	}
	var blocks int
	*b = board{names: map[*sequence]string{}, root: kv.Root("test"), prompts: map[string][]int32{}}
	b.sched.now = time.Now
	d.ScanArgs(t, "rows", &b.sched.rows)
	d.ScanArgs(t, "heads", &b.sched.headRows)
	d.ScanArgs(t, "blocks", &blocks)
	d.MaybeScanArgs(t, "seats", &b.sched.most)
	b.sched.streams = d.HasArg("streams")
	shape := kv.Shape{Type: kernel.CacheF16, Layers: []nn.CacheLayer{{KVHeads: 1, KDim: 8, VDim: 8}}}
	bytes := int64(blocks * shape.BlockBytes())
	b.ledger = budget.New(bytes)
	var err error
	if b.cache, err = kv.New(b.ledger, shape, bytes); err != nil {
		t.Fatal(err)
	}
	b.sched.cache = b.cache
}

// submit name prompt=… [max=…] [priority=…] [like=name,tokens] [rows] [tap] [shape] [kept]
func (b *board) submit(t *testing.T, d *datadriven.TestData) string {
	q := &sequence{cache: b.cache.NewSequence(), owned: true, stream: newStream(func() {})}
	q.cache.Share(b.root)
	var n int
	d.ScanArgs(t, "prompt", &n)
	d.MaybeScanArgs(t, "max", &q.req.MaxTokens)
	d.MaybeScanArgs(t, "priority", &q.req.Priority)
	q.req.IDs = make([]int32, n)
	b.seed++
	for i := range q.req.IDs {
		q.req.IDs[i] = 1000*b.seed + int32(i)
	}
	var like string
	if d.MaybeScanArgs(t, "like", &like, &n) {
		copy(q.req.IDs[:n], b.prompts[like])
	}
	b.prompts[d.CmdArgs[0].Key] = q.req.IDs
	q.ids = slices.Clone(q.req.IDs)
	if d.HasArg("rows") {
		q.req.Rows = func(int, []float32) error { return nil }
	}
	if d.HasArg("tap") {
		q.req.Tap = func(string, int, int, []float32) {}
	}
	if d.HasArg("shape") {
		q.req.Shape = &nn.Segment{}
	}
	if d.HasArg("kept") {
		q.owned, q.cache = false, b.cache.NewSequence()
	}
	b.names[q] = d.CmdArgs[0].Key
	b.sched.accept(q)
	return b.state()
}

// step [n=…] runs one step or several.
func (b *board) steps(t *testing.T, d *datadriven.TestData) string {
	n := 1
	d.MaybeScanArgs(t, "n", &n)
	var out strings.Builder
	for range n {
		parts, failed, err := b.sched.next()
		for _, p := range parts {
			fmt.Fprintf(&out, "%s: rows %d to %d, head %v\n", b.names[p.seq], p.seq.done, p.seq.done+p.rows-1, p.head)
		}
		if failed != nil {
			text, _, _ := strings.Cut(err.Error(), ":")
			fmt.Fprintf(&out, "%s fails: %s\n", b.names[failed], text)
			b.end(t, failed)
		}
		for _, p := range parts {
			b.advance(t, p)
		}
	}
	return out.String() + b.state()
}

func (b *board) advance(t *testing.T, p part) {
	q := p.seq
	if err := q.advance(part{seq: q, rows: p.rows, head: p.head}, 0, nil); err != nil {
		t.Error(err)
	}
	if q.behind() == 0 && len(q.ids) < q.length() {
		q.ids = append(q.ids, int32(len(q.ids)))
	}
	if len(q.ids) == q.length() && (q.behind() == 0 || q.req.MaxTokens > 0) {
		b.end(t, q)
	}
}

// force name n=…: tokens that follow without a choice.
func (b *board) force(t *testing.T, d *datadriven.TestData) {
	var n int
	d.ScanArgs(t, "n", &n)
	q := b.named(d.CmdArgs[0].Key)
	q.ids = append(q.ids, make([]int32, n)...)
}

func (b *board) end(t *testing.T, q *sequence) {
	b.sched.remove(q)
	delete(b.names, q)
	if err := q.cache.Release(); err != nil {
		t.Error(err)
	}
}

func (b *board) named(name string) *sequence {
	for q, n := range b.names {
		if n == name {
			return q
		}
	}
	return nil
}

// state lists who runs: how many positions are cached, of how many known ids; then who waits.
func (b *board) state() string {
	list := func(qs []*sequence) string {
		var out []string
		for _, q := range qs {
			out = append(out, fmt.Sprintf("%s %d/%d", b.names[q], q.done, len(q.ids)))
		}
		return strings.Join(out, ", ")
	}
	out := "nobody runs"
	if len(b.sched.running) > 0 {
		out = list(b.sched.running)
	}
	if len(b.sched.waiting) > 0 {
		out += "; waiting: " + list(b.sched.waiting)
	}
	return out + "\n"
}
