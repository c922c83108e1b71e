package spillway

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/synth"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/trace"
)

// slotted opens a small model whose experts have slots, but not all of them.
func slotted(t *testing.T, typ string, o ModelOptions) (*Runtime, *Model) {
	t.Helper()
	startTakes(t, 0) // else it would fit
	path := filepath.Join(t.TempDir(), "m.gguf")
	if _, err := synth.Write(context.Background(), synth.Options{Shape: "storyteller-moe", Type: typ, Path: path, Seed: 5, Zipf: 2, Locality: 0.2}); err != nil {
		t.Fatal(err)
	}
	o.Context, o.Chunk = 256, 16
	least := leastFor(t, path, 2, o)
	for more := int64(0); more < 64<<20; more += 1 << 20 {
		rt, m := openNear(t, path, least+more, 2, o)
		if p := m.CurrentPlan().Experts; p.Slots > p.Layers*p.Used && !p.Resident() {
			return rt, m
		}
		closeAll(t, m, o.ExpertLog, rt)
		*o.ExpertLog = ExpertLog{Tokens: o.ExpertLog.Tokens}
		if o.Trace != nil {
			o.Trace.(*closing).Reset()
		}
	}
	t.Fatal("no memory gives slots to some experts")
	return nil, nil
}

func closeAll(t *testing.T, m *Model, l *ExpertLog, rt *Runtime) {
	t.Helper()
	if err := errors.Join(m.Close(), l.Close(), rt.Close()); err != nil {
		t.Fatal(err)
	}
	if used := rt.Ledger().Used; used != 0 {
		t.Errorf("%d bytes are still leased", used)
	}
}

func answerOf(t *testing.T, m *Model, seed, tokens int) {
	t.Helper()
	_, err := m.Generate(context.Background(), Request{
		IDs: promptFor(seed, m.Layout().Vocab), MaxTokens: tokens, Sampling: &Sampling{Temperature: 1, Seed: uint64(seed)}, IgnoreEnd: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// What had to be read is what the replay of the run's trace says, at any point, and the run has read no less.
func TestExpertLog(t *testing.T) {
	out, log := new(closing), new(ExpertLog)
	rt, m := slotted(t, "q8_0", ModelOptions{Trace: out, ExpertLog: log})
	answerOf(t, m, 1, 40)
	middle := log.End()
	answerOf(t, m, 2, 60)
	end, io, p := log.End(), m.IO(), m.CurrentPlan()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	least, err := log.Least(0, end, false)
	if err != nil {
		t.Fatal(err)
	}
	x := loadTrace(t, bytes.NewReader(out.Bytes()))
	replay, err := x.Replay(context.Background(), trace.Setting{Policies: []string{"adaptive"}, Slots: []int{p.Experts.Slots}, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	o := replay[0]
	if want := (o.Demands - o.Optimal) * x.ExpertBytes(0); least != want || o.Optimal == 0 || o.Optimal == o.Demands {
		t.Errorf("%d bytes had to be read, the replay of %d demands with %d slots says %d", least, o.Demands, o.Slots, want)
	}
	if o.Demands != io.Experts || least > io.Streamed() || least < io.Streamed()/4 {
		t.Errorf("%d bytes had to be read for %d demands; the run had %d and read %d", least, o.Demands, io.Experts, io.Streamed())
	}
	first, err1 := log.Least(0, middle, false)
	second, err2 := log.Least(middle, end, true)
	cold, err3 := log.Least(middle, end, false)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if first >= least || first+second > least || second >= cold || second == 0 || first+cold < least {
		t.Errorf("%d bytes in all, %d and %d (warm) or %d (cold) in parts", least, first, second, cold)
	}
	closeLog(t, log, rt)
}

// traced answers prompts under a policy with slots for half of the experts, and returns what a replay of its trace says of the policies at as many
// slots, the run's own first.
func traced(t *testing.T, path, own string, memory int64, prompts []storyCase) []trace.Outcome {
	t.Helper()
	log, out := new(ExpertLog), new(closing)
	rt, m := openNear(t, path, memory, 2, ModelOptions{Context: 400, Chunk: 16, Policy: own, Prediction: "off", ExpertLog: log, Trace: out})
	for i, p := range prompts {
		_, err := m.Generate(context.Background(), Request{IDs: p.IDs, MaxTokens: 120, Sampling: &Sampling{Temperature: 1, Seed: uint64(i)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	io, end, slots := m.IO(), log.End(), m.CurrentPlan().Experts.Slots
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	least, err := log.Least(0, end, false)
	if err != nil {
		t.Fatal(err)
	}
	closeLog(t, log, rt)
	x := loadTrace(t, bytes.NewReader(out.Bytes()))
	replay, err := x.Replay(context.Background(), trace.Setting{Policies: []string{own, "adaptive", "lru", "lfu"}, Slots: []int{slots}, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %d slots: %d of %d demands hit, %d in the replay, %d at best; %d of %d bytes had to be read",
		own, slots, io.ExpertHits, io.Experts, replay[0].Hits, replay[0].Optimal, least, io.Streamed())
	if o := replay[0]; io.Experts != o.Demands || least != (o.Demands-o.Optimal)*x.ExpertBytes(0) || least > (io.Experts-io.ExpertHits)*x.ExpertBytes(0) {
		t.Errorf("%d bytes had to be read for %d demands, %d hits; the replay: %+v", least, io.Experts, io.ExpertHits, o)
	}
	return replay
}

// A trained model with slots for half of its experts: no policy reads less than what had to be read, and the default hardly more than the best of
// the others.
func TestExpertLogStoryteller(t *testing.T) {
	path := testutil.Shared(t, "models/storyteller-moe/storyteller-moe-Q8_0.gguf")
	var ref struct {
		Cases []storyCase `json:"q8_0_dequantized"`
	}
	readJSON(t, testutil.Shared(t, "models/storyteller-moe/reference.json"), &ref)
	startTakes(t, 0)
	for _, own := range []string{"adaptive", "lru", "lfu"} {
		replay := traced(t, path, own, halfSlots(t, path), ref.Cases) // the test's own heap has grown since the last one
		own, adaptive, best := replay[0].PolicyFraction(), replay[1].PolicyFraction(), max(replay[2].PolicyFraction(), replay[3].PolicyFraction())
		if own > 1 || own < 0.2 || adaptive < best-0.02 {
			t.Errorf("%s reads %.3f of what it must, the default %.3f, the best %.3f", replay[0].Policy, own, adaptive, best)
		}
	}
}

// halfSlots is memory for half of a model's experts.
func halfSlots(t *testing.T, path string) int64 {
	t.Helper()
	o := ModelOptions{Context: 400, Chunk: 16, ExpertLog: new(ExpertLog)}
	least := leastFor(t, path, 2, o)
	for more := int64(0); more < 16<<20; more += 256 << 10 {
		rt, m := openNear(t, path, least+more, 2, o)
		p := m.CurrentPlan().Experts
		closeAll(t, m, o.ExpertLog, rt)
		if o.ExpertLog = new(ExpertLog); 2*p.Slots >= p.Layers*p.Count {
			if p.Resident() {
				break
			}
			return least + more
		}
	}
	t.Fatal("no memory gives half of the experts slots")
	return 0
}

// closeLog closes what is left when the model is closed.
func closeLog(t *testing.T, l *ExpertLog, rt *Runtime) {
	t.Helper()
	if err := errors.Join(l.Close(), l.Close(), rt.Close()); err != nil {
		t.Fatal(err)
	}
	if used := rt.Ledger().Used; used != 0 {
		t.Errorf("%d bytes are still leased", used)
	}
	if _, err := l.Least(0, 0, false); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed log answers %v", err)
	}
}

// A log that is too small says so, and only of what it has not.
func TestExpertLogFull(t *testing.T) {
	log := &ExpertLog{Tokens: 1}
	rt, m := slotted(t, "q8_0", ModelOptions{ExpertLog: log})
	answerOf(t, m, 0, 10)
	early := log.End()
	for i := range 3 {
		answerOf(t, m, i, 180)
	}
	late := log.End()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Least(0, early, false); err != nil {
		t.Error(err)
	}
	if _, err := log.Least(early, late, true); !errors.Is(err, errLogFull) {
		t.Errorf("a full log answers %v", err)
	}
	closeLog(t, log, rt)
}

// A model that shrinks to its least gives the log up.
func TestExpertLogResized(t *testing.T) {
	log := new(ExpertLog)
	rt, m := slotted(t, "q8_0", ModelOptions{ExpertLog: log})
	p := m.CurrentPlan()
	answerOf(t, m, 0, 10)
	with := log.lease.Bytes()
	if with == 0 || p.Budget != rt.Memory() || rt.Ledger().Used > rt.Memory() {
		t.Fatalf("a log of %d bytes, plan for %d, memory %d, %d used", with, p.Budget, rt.Memory(), rt.Ledger().Used)
	}
	end := log.End()
	if err := rt.SetMemory(p.Least + heapMoves); err != nil {
		t.Fatal(err)
	}
	answerOf(t, m, 0, 10)
	if _, err := log.Least(0, end, false); !errors.Is(err, errLogResized) {
		t.Errorf("after a change of the memory the log answers %v", err)
	}
	closeAll(t, m, log, rt)
}

// Plans with a log have the same least as those without, work from there on, and have slots wherever these do.
func TestExpertLogPlans(t *testing.T) {
	rt, m := slotted(t, "q8_0", ModelOptions{ExpertLog: new(ExpertLog)})
	defer closeAll(t, m, m.options.ExpertLog, rt)
	r, o := m.planned, m.options
	without, logs := ModelOptions{}, 0
	p, _, err := without.planLogged(r)
	if err != nil {
		t.Fatal(err)
	}
	least, slots := p.Least, p.Experts.Slots
	for r.Budget = least - 97<<10; r.Budget < least+24<<20; r.Budget += 97 << 10 {
		p, n, err := o.planLogged(r)
		var small *TooSmallError
		if r.Budget < least {
			if !errors.As(err, &small) || small.Least != least {
				t.Fatalf("below the least: %v", err)
			}
			continue
		}
		q, _, err2 := without.planLogged(r)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		used := n
		for _, pool := range p.Pools {
			used += pool
		}
		if p.Least != least || p.Budget != r.Budget || used > r.Budget || logged(p) != logged(q) || n > 0 && !logged(p) || n > r.Budget/logShare+4096 {
			t.Fatalf("%d bytes: least %d of %d, %d used, a log of %d; slots %d and %d", r.Budget, p.Least, least, used, n, p.Experts.Slots, q.Experts.Slots)
		}
		if n > 0 {
			logs++
		}
	}
	if logs < 10 || slots == 0 {
		t.Errorf("%d plans had a log", logs)
	}
}

// Who needs memory that nobody else has gets the log's.
func TestExpertLogYields(t *testing.T) {
	log := new(ExpertLog)
	rt, m := slotted(t, "q8_0", ModelOptions{ExpertLog: log})
	answerOf(t, m, 0, 10)
	var leases []*budget.Lease
	for n := int64(1 << 20); n >= 4096; n /= 2 {
		for {
			l, err := rt.ledger.Reserve(budget.Runtime, n, "all there is")
			if err != nil {
				break
			}
			leases = append(leases, l)
		}
	}
	if log.End() != -1 {
		t.Error("the log kept its memory")
	}
	if _, err := log.Least(0, 0, false); !errors.Is(err, errLogTaken) {
		t.Errorf("a log without memory answers %v", err)
	}
	answerOf(t, m, 1, 10)
	for _, l := range leases {
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	closeAll(t, m, log, rt)
}

// A model whose experts all have slots needs no log.
func TestExpertLogUnused(t *testing.T) {
	log := new(ExpertLog)
	path := filepath.Join(t.TempDir(), "m.gguf")
	if _, err := synth.Write(context.Background(), synth.Options{Shape: "toy-moe", Type: "q8_0", Path: path}); err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(t, 256<<20)
	m, err := rt.Open(context.Background(), path, ModelOptions{Context: 128, ExpertLog: log})
	if err != nil {
		t.Fatal(err)
	}
	answerOf(t, m, 0, 5)
	if m.env.Routing != nil || log.End() != -1 {
		t.Error("experts that are all in memory are logged")
	}
	if _, err := log.Least(0, 0, false); err == nil {
		t.Error("what was not logged has a least")
	}
	closeAll(t, m, log, rt)
}
