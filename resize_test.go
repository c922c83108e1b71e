package spillway

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/spillway/spillway/internal/plan"
	"github.com/spillway/spillway/internal/synth"
)

// Caps that change all the time, between the least and more than everything, change no bit; and no cap is passed.
func TestResizeInTheMiddle(t *testing.T) {
	for _, shape := range []string{"toy", "toy-moe"} {
		t.Run(shape, func(t *testing.T) {
			startTakes(t, 0) // else small models would always fit
			path := filepath.Join(t.TempDir(), "toy.gguf")
			r, err := synth.Write(context.Background(), synth.Options{Shape: shape, Type: "q8_0", Path: path, Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			o := ModelOptions{Context: 128, Sequences: 4, HeadRows: 64}
			least := leastFor(t, path, 2, o)
			plain := metamorphic{budget: 64<<20 + r.Bytes, threads: 2, chunk: 512, isa: ISA(), sequences: 4}
			want := plain.run(t, path, false).digests
			rt, m := openNear(t, path, least+r.Bytes/2, 2, o)
			for i, d := range resizedRun(t, rt, m, least, r.Bytes) {
				if d != want[i] {
					t.Errorf("prompt %d has logits %s, the plain run has %s", i, d, want[i])
				}
			}
			if u := rt.Ledger(); u.Used > u.Limit {
				t.Errorf("%d bytes are leased of %d", u.Used, u.Limit)
			}
			if err := errors.Join(m.Close(), rt.Close()); err != nil {
				t.Fatal(err)
			}
			if used := rt.Ledger().Used; used != 0 {
				t.Errorf("%d bytes are still leased", used)
			}
		})
	}
}

// resizedRun runs four prompts, each a few times over, while the memory changes.
func resizedRun(t *testing.T, rt *Runtime, m *Model, least, weights int64) []string {
	t.Helper()
	digests, errs := make([]string, 4), make([]error, 4)
	var running, resizing sync.WaitGroup
	done := make(chan struct{})
	resizing.Go(func() {
		random := rand.New(rand.NewPCG(1, 5))
		resident, streamed := 0, 0
		for {
			select {
			case <-done:
				if resident == 0 || streamed == 0 {
					t.Errorf("%d caps held everything, %d did not", resident, streamed)
				}
				return
			default:
			}
			// What the tests' own heap took meanwhile is the runtime's, too.
			memory := least + heapMoves + random.Int64N(2*weights)
			if err := rt.SetMemory(memory); err != nil {
				t.Errorf("a memory of %d, where %d are the least: %v", memory, least, err)
				return
			}
			p, u := m.CurrentPlan(), rt.Ledger()
			if u.Limit != memory || u.Used > memory || rt.Memory() != memory || p.Budget > memory {
				t.Errorf("a memory of %d: %+v", memory, u)
			}
			if p.Resident {
				resident++
			} else {
				streamed++
			}
		}
	})
	for i := range digests {
		running.Go(func() {
			for range 3 {
				d, err := digestOf(m, promptFor(i, m.Layout().Vocab))
				if digests[i] != "" && digests[i] != d {
					err = errors.Join(err, errors.New("logits change from one run to the next"))
				}
				digests[i], errs[i] = d, errors.Join(errs[i], err)
			}
		})
	}
	running.Wait()
	close(done)
	resizing.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return digests
}

// A cap below the least is refused with the least, and changes nothing; at the least it works.
func TestResizeBelowTheLeast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toy.gguf")
	if _, err := synth.Write(context.Background(), synth.Options{Shape: "toy-moe", Type: "q8_0", Path: path, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(t, 256<<20)
	m, err := rt.Open(context.Background(), path, ModelOptions{Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	before := rt.Ledger()
	var small *TooSmallError
	if err := rt.SetMemory(1 << 20); !errors.As(err, &small) {
		t.Fatalf("a MiB: %v", err)
	}
	if u := rt.Ledger(); u.Used != before.Used || u.Limit != before.Limit || rt.Memory() != 256<<20 {
		t.Errorf("a refused cap changes the ledger: %+v, %+v", before, u)
	}
	if err := rt.SetMemory(small.Least); err != nil {
		t.Fatalf("the least that was named: %v", err)
	}
	if p := m.CurrentPlan(); p.Resident || p.Experts.Resident() {
		t.Errorf("at the least: %+v", p)
	}
	if _, err := digestOf(m, promptFor(0, m.Layout().Vocab)); err != nil {
		t.Error(err)
	}
	if err := rt.SetMemory(256 << 20); err != nil || !m.CurrentPlan().Resident {
		t.Errorf("all again: %v", err)
	}
	if err := errors.Join(m.Close(), rt.Close()); err != nil {
		t.Fatal(err)
	}
	if err := rt.SetMemory(1 << 30); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed runtime: %v", err)
	}
}

// Several models share what a cap takes and gives; what the program's start took, if it was more than they need, is over.
func TestResizeOfSeveralModels(t *testing.T) {
	startTakes(t, 128<<20)
	dir := t.TempDir()
	var paths []string
	for _, shape := range []string{"toy", "toy-moe"} {
		path := filepath.Join(dir, shape+".gguf")
		if _, err := synth.Write(context.Background(), synth.Options{Shape: shape, Type: "f16", Path: path, Seed: 3}); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	rt := newRuntime(t, 512<<20)
	var models []*Model
	var want []string
	for _, path := range paths {
		m, err := rt.Open(context.Background(), path, ModelOptions{Context: 64, HeadRows: 64})
		if err != nil {
			t.Fatal(err)
		}
		d, err := digestOf(m, promptFor(0, m.Layout().Vocab))
		if err != nil {
			t.Fatal(err)
		}
		models, want = append(models, m), append(want, d)
	}
	var small *TooSmallError
	if err := rt.SetMemory(1 << 20); !errors.As(err, &small) {
		t.Fatalf("a MiB: %v", err)
	}
	for _, memory := range []int64{small.Least, small.Least + 4<<20, 512 << 20, small.Least + 1<<20} {
		if err := rt.SetMemory(memory); err != nil {
			t.Fatalf("%d bytes: %v", memory, err)
		}
		plans := []*plan.Plan{models[0].CurrentPlan(), models[1].CurrentPlan()}
		if memory == 512<<20 && !(plans[0].Resident && plans[1].Resident) || memory < 64<<20 && (plans[0].Resident || plans[1].Resident) {
			t.Errorf("%d bytes: %v, %v", memory, plans[0].Resident, plans[1].Resident)
		}
		for i, m := range models {
			if d, err := digestOf(m, promptFor(0, m.Layout().Vocab)); err != nil || d != want[i] {
				t.Errorf("%d bytes, model %d: %s, want %s; %v", memory, i, d, want[i], err)
			}
		}
	}
	if err := errors.Join(models[0].Close(), models[1].Close(), rt.Close()); err != nil {
		t.Fatal(err)
	}
}
