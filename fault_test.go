package spillway

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/synth"
	"github.com/spillway/spillway/internal/vfs"
	"github.com/spillway/spillway/internal/vfs/vfstest"
)

// toyFile writes the toy shape, whose weights are larger than the smallest ring.
func toyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "toy.gguf")
	if _, err := synth.Write(context.Background(), synth.Options{Shape: "toy", Type: "q8_0", Path: path, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	return path
}

// streaming starts a model with hardly more than the least memory, on a file system.
func streaming(t *testing.T, path string, fs vfs.FS) *Model {
	t.Helper()
	o := ModelOptions{Context: 128, Sequences: 3, HeadRows: 8, Chunk: 16}
	startTakes(t, 0) // else everything would fit
	rt, err := New(Options{Memory: leastFor(t, path, 2, o), Threads: 2, Files: fs})
	if err != nil {
		t.Fatal(err)
	}
	m, err := rt.Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), rt.Close()); err != nil {
			t.Error(err)
		}
		if used := rt.Ledger().Used; used != 0 {
			t.Errorf("%d bytes are still leased", used)
		}
	})
	if m.CurrentPlan().StreamedBytes == 0 {
		t.Fatal("nothing is streamed")
	}
	return m
}

// faults are what can go wrong for good, and what the error must be and name.
var faults = []struct {
	name  string
	plan  vfs.Plan
	is    error
	names []string
}{
	{"read error", vfs.Plan{FailRead: 1, FailFor: 1 << 60}, syscall.EIO, []string{"toy.gguf", ".weight", " at offset "}},
	{"truncation", vfs.Plan{TruncateAt: 1 << 20}, io.ErrUnexpectedEOF, []string{"toy.gguf", " at offset ", ".weight", "the file ends at "}},
	{"truncation of the last tensors", vfs.Plan{TruncateAt: 12 << 20}, io.ErrUnexpectedEOF, []string{"toy.gguf", ".weight", "the file ends at "}},
}

// A fault in mid-answer ends that answer with one error that says where, gives every lease back, and
// leaves a model that answers the next request as if nothing had been.
func TestFaultInMidAnswer(t *testing.T) {
	path := toyFile(t)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			fs := vfstest.NewSwitched(f.plan)
			m := streaming(t, path, fs)
			req := Request{IDs: promptFor(2, 4096), MaxTokens: 12, IgnoreEnd: true}
			want, err := m.Generate(context.Background(), req, nil)
			if err != nil {
				t.Fatal(err)
			}
			talk := m.NewConversation()
			defer talk.Close()
			for _, c := range []*Conversation{nil, talk} {
				before := m.rt.Ledger().Used
				bad := req
				bad.Conversation = c
				bad.Logits = func(position int, _ []float32) { fs.On.Store(position >= len(req.IDs)+4) }
				a, err := m.Generate(context.Background(), bad, nil)
				if !errors.Is(err, f.is) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("the error is %v", err)
				}
				for _, name := range append(f.names, "the answer ended after") {
					if !strings.Contains(err.Error(), name) {
						t.Errorf("%q does not name %q", err, name)
					}
				}
				if n := len(a.IDs); n < 4 || n >= 12 || !slices.Equal(a.IDs, want.IDs[:n]) {
					t.Errorf("the answer before the fault is %v, expected the beginning of %v", a.IDs, want.IDs)
				}
				if used := m.rt.Ledger().Used; c == nil && used != before {
					t.Errorf("%d bytes are leased, %d before", used, before)
				}
				fs.On.Store(false)
				next := req
				next.Conversation = c
				if got, err := m.Generate(context.Background(), next, nil); err != nil || !slices.Equal(got.IDs, want.IDs) || (c != nil && got.CachedTokens == 0) {
					t.Errorf("the next answer is %+v (%v), expected %v", got, err, want.IDs)
				}
			}
		})
	}
}

// What passes is not noticed: a single failed read, and a slow drive.
func TestHarmlessFaults(t *testing.T) {
	path := toyFile(t)
	ids := promptFor(2, 4096)
	want, err := digestOf(streaming(t, path, vfs.OS()), ids)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]vfs.Plan{
		"one failed read": {FailRead: 40},
		"delays": {Delay: func(read int64) time.Duration {
			return time.Duration(rand.New(rand.NewPCG(uint64(read), 1)).IntN(400)) * time.Microsecond
		}},
	} {
		fs := vfs.Fault(vfs.OS(), p)
		if got, err := digestOf(streaming(t, path, fs), ids); err != nil || got != want {
			t.Errorf("%s: digest %s, expected %s (%v)", name, got, want, err)
		}
		if fs.Reads() < 40 {
			t.Errorf("%s: only %d reads", name, fs.Reads())
		}
	}
}

// Any read that fails while a model is opened ends that with an error that names the file, and
// leaves nothing leased.
func TestFaultWhileOpening(t *testing.T) {
	path := toyFile(t)
	open := func(fs vfs.FS) error {
		rt, err := New(Options{Memory: 256 << 20, Threads: 1, Files: fs})
		if err != nil {
			t.Fatal(err)
		}
		m, err := rt.Open(context.Background(), path, ModelOptions{Context: 64})
		if err == nil {
			err = m.Close()
		}
		if closed := rt.Close(); closed != nil {
			t.Error(closed)
		}
		if used := rt.Ledger().Used; used != 0 {
			t.Errorf("%d bytes are still leased", used)
		}
		return err
	}
	failed := 0
	for read := int64(1); read <= 40; read++ {
		err := open(vfs.Fault(vfs.OS(), vfs.Plan{FailRead: read, FailFor: 1 << 60}))
		if err == nil { // the reads ahead of the first sweep may fail; nobody has asked for them
			continue
		}
		failed++
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "toy.gguf") || strings.Contains(err.Error(), "\n") {
			t.Errorf("read %d: %v", read, err)
		}
	}
	if failed < 3 {
		t.Errorf("only %d reads were worth an error", failed)
	}
	if err := open(vfs.Fault(vfs.OS(), vfs.Plan{OpenErr: syscall.EACCES})); !errors.Is(err, syscall.EACCES) {
		t.Errorf("a file that cannot be opened: %v", err)
	}
}

// A header with wrong bytes is refused, or describes another model; nothing panics.
func TestCorruptHeader(t *testing.T) {
	path := toyFile(t)
	cat, err := checkpoint.Open(vfs.OS(), path)
	if err != nil {
		t.Fatal(err)
	}
	size := cat.Files[0].DataStart
	if err := cat.Close(); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(9, 9))
	refused := 0
	for i := range 120 {
		flip := []int64{int64(i)} // every byte of the beginning, then anywhere
		if i >= 60 {
			flip = []int64{random.Int64N(size), random.Int64N(size), random.Int64N(size)}
		}
		if err := describeAndPlan(t, vfs.Fault(vfs.OS(), vfs.Plan{Flip: flip}), path); err != nil {
			refused++
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("bytes %v flipped: %v", flip, err)
			}
		}
	}
	if refused < 20 {
		t.Errorf("only %d headers were refused", refused)
	}
}

// describeAndPlan reads a model up to where weights would be read.
func describeAndPlan(t testing.TB, fs vfs.FS, path string) error {
	rt, err := New(Options{Memory: 1 << 40, Threads: 1, Files: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Close(); err != nil || rt.Ledger().Used != 0 {
			t.Errorf("%d bytes are still leased: %v", rt.Ledger().Used, err)
		}
	}()
	c, err := rt.Load(context.Background(), path)
	if err != nil {
		return err
	}
	_, err = c.Plan(ModelOptions{Context: 64})
	return errors.Join(err, c.Close())
}

// A request that is cancelled, in its prompt or in its answer, gives its leases back; what runs
// beside it keeps its bits.
func TestCancelLeavesTheOthersAlone(t *testing.T) {
	m := streaming(t, toyFile(t), vfs.OS())
	vocab := m.Layout().Vocab
	var want [2]string
	for i := range want {
		var err error
		if want[i], err = digestOf(m, promptFor(i, vocab)); err != nil {
			t.Fatal(err)
		}
	}
	idle := m.rt.Ledger().Used
	for _, at := range []int{20, 50} { // of a prompt of 33 tokens, and of the answer
		ctx, cancel := context.WithCancel(context.Background())
		var got [2]string
		var errs [2]error
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i], errs[i] = digestOf(m, promptFor(i, vocab)) })
		}
		stop := func(position int) {
			if position == at {
				cancel()
			}
		}
		added, err := m.Probe(ctx, Probe{IDs: promptFor(2, vocab), Greedy: 90,
			Rows:   func(position int, _ []float32) error { stop(position); return nil },
			Logits: func(position int, _ []float32) { stop(position) },
		})
		if n := max(at-33+1, 0); !errors.Is(err, context.Canceled) || len(added) != n {
			t.Errorf("cancelled at position %d: %d tokens, expected %d (%v)", at, len(added), n, err)
		}
		wg.Wait()
		if err := errors.Join(errs[:]...); err != nil || got != want {
			t.Errorf("cancelled at position %d: the neighbours' digests are %v, expected %v (%v)", at, got, want, err)
		}
		if used := m.rt.Ledger().Used; used != idle {
			t.Errorf("cancelled at position %d: %d bytes are leased, %d before", at, used, idle)
		}
		cancel()
	}
}
