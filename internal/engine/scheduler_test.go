package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/nn"
)

// board is the state of one text file under testdata/scheduler. Sequences are names; every step takes
// the rows that were planned, and an answer's next token follows at once, as in Engine.advance.
type board struct {
	sched  scheduler
	ledger *budget.Ledger
	cache  *kv.Cache
	names  map[*sequence]string
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
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return b.state()
		})
		for q := range b.names {
			b.end(t, q)
		}
		if used := b.ledger.Snapshot().Used; used != 0 {
			t.Errorf("%d bytes are still leased", used)
		}
	})
}

// new rows=… heads=… blocks=…: the limits of a step, and the blocks of 16 positions that there are.
func (b *board) new(t *testing.T, d *datadriven.TestData) {
	for q := range b.names {
		b.end(t, q)
	}
	var blocks int
	b.names = map[*sequence]string{}
	d.ScanArgs(t, "rows", &b.sched.rows)
	d.ScanArgs(t, "heads", &b.sched.headRows)
	d.ScanArgs(t, "blocks", &blocks)
	shape := kv.Shape{Type: kernel.CacheF16, Layers: []nn.CacheLayer{{KVHeads: 1, KDim: 8, VDim: 8}}}
	b.ledger = budget.New(int64(blocks * shape.BlockBytes()))
	var err error
	if b.cache, err = kv.New(b.ledger, shape, 0); err != nil {
		t.Fatal(err)
	}
}

// submit name prompt=… [max=…] [rows] [tap] [shape]
func (b *board) submit(t *testing.T, d *datadriven.TestData) string {
	q := &sequence{cache: b.cache.NewSequence(), stream: newStream(func() {})}
	var n int
	d.ScanArgs(t, "prompt", &n)
	d.MaybeScanArgs(t, "max", &q.req.MaxTokens)
	q.req.IDs = make([]int32, n)
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
	b.names[q] = d.CmdArgs[0].Key
	b.sched.running = append(b.sched.running, q)
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
	q.done += p.rows
	if q.done == len(q.ids) && len(q.ids) < q.length() {
		q.ids = append(q.ids, 0)
	}
	if len(q.ids) == q.length() && (q.done == len(q.ids) || q.req.MaxTokens > 0) {
		b.end(t, q)
	}
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

// state lists who runs: how many positions are cached, of how many known ids.
func (b *board) state() string {
	var out []string
	for _, q := range b.sched.running {
		out = append(out, fmt.Sprintf("%s %d/%d", b.names[q], q.done, len(q.ids)))
	}
	if out == nil {
		return "nobody runs\n"
	}
	return strings.Join(out, ", ") + "\n"
}
