package trace

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway/spillway/internal/policy"
	"github.com/spillway/spillway/internal/trace/skew"
)

var policies = policy.Names()

// made is routing of a skew as a source: rows of answers, and prompts every so many steps.
type made struct {
	header      Header
	routers     []*skew.Router // the layers take turns
	steps       int
	promptEvery int // 0: never
	promptRows  int
	turnEvery   int // 0: layers take turns; else all layers use one router for so many steps, then the next one
	at, layer   int
}

func (m *made) Header() Header { return m.header }

func (m *made) Next() (Record, error) {
	if m.layer == m.header.Layers {
		m.layer = 0
		m.at++
	}
	if m.at == m.steps {
		return Record{}, io.EOF
	}
	r := Record{Step: m.at, Layer: m.layer, Decode: 1}
	if m.promptEvery > 0 && m.at%m.promptEvery == 0 {
		r.Decode, r.Prefill = 0, m.promptRows
	}
	var ids []int32
	turn := m.layer
	if m.turnEvery > 0 {
		turn = m.at / m.turnEvery
	}
	for row := range r.Decode + r.Prefill {
		ids = m.routers[turn%len(m.routers)].Experts(ids, m.layer, m.at+row*m.steps)
	}
	for _, e := range ids {
		r.Experts = append(r.Experts, uint16(e))
	}
	m.layer++
	return r, nil
}

func (m *made) load(t testing.TB) *Trace {
	t.Helper()
	x, err := Load(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// making is a source of one skew.
func making(layers, steps int, s skew.Skew) *made {
	return &made{header: Header{Layers: layers, Experts: s.Experts, Used: s.Used}, steps: steps, routers: []*skew.Router{skew.New(s)}}
}

func (t *Trace) replay(tb testing.TB, s Setting) []Outcome {
	tb.Helper()
	s.Threads = 2
	out, err := t.Replay(context.Background(), s)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// sizes are shares of all experts, in sixteenths.
func (t *Trace) sizes(sixteenths ...int) []int {
	out := make([]int, len(sixteenths))
	for i, n := range sixteenths {
		out[i] = t.Header.Layers * t.Header.Experts * n / 16
	}
	return out
}

func TestReplayByHand(t *testing.T) {
	x, err := load(tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	// Step 0 needs 1 2 3 and 7 6, step 1 needs 2 1 and 0 7: of 9 demands 3 can be hits.
	want := Outcome{
		Policy: "lru", Slots: 16, Demands: 9, Hits: 3, Answers: 4, AnswerHits: 3, DemandBytes: 5*100 + 4*200, ReadBytes: 3*100 + 3*200,
		Optimal: 3, OptimalByLayer: 3,
	}
	got := x.replay(t, Setting{Policies: []string{"lru"}, Slots: []int{16}})
	if d := cmp.Diff([]Outcome{want}, got); d != "" {
		t.Error(d)
	}
	if f := got[0].PolicyFraction(); f != 1 {
		t.Errorf("policy fraction %v", f)
	}
	if d := cmp.Diff([]int64{0, 2, 2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2}, x.Heat()); d != "" {
		t.Error(d)
	}
	// Layer 0: after 1 2 3 come 2, with one behind it in order, and 1. Layer 1: 7 is first in order.
	if d := cmp.Diff(Reuse{Distance: []int64{2, 1, 0, 0, 0, 0, 0, 0}, First: 6}, x.Reuse()); d != "" {
		t.Error(d)
	}
}

// Outcomes stay the same for any number of threads, and no policy is better than the optimum.
func TestReplayBounds(t *testing.T) {
	x := open(t, small)
	s := Setting{Policies: policies, Slots: x.sizes(1, 2, 4, 8, 12, 16), Threads: 1}
	one, err := x.Replay(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	s.Threads = 4
	four, err := x.Replay(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(one, four); d != "" {
		t.Error(d)
	}
	for _, o := range one {
		if o.Hits > o.Optimal || o.OptimalByLayer > o.Optimal || o.PolicyFraction() > 1 || o.AnswerHits > o.Hits {
			t.Errorf("%+v", o)
		}
	}
	if last := one[len(one)-1]; last.Hits != last.Optimal {
		t.Errorf("with room for all: %+v", last)
	}
}

// Reuse distances give the hits of a per-layer LRU without simulating it, where shares are equal and nothing waits.
func TestReuseIsLRU(t *testing.T) {
	s := skew.Skew{Experts: 24, Used: 1, Zipf: 0.8, Keep: 0.2, Seed: 3}
	x := making(1, 900, s).load(t)
	reuse := x.Reuse()
	for _, slots := range []int{4, 9, 20} {
		want := int64(0)
		for _, n := range reuse.Distance[:slots] {
			want += n
		}
		if o := x.replay(t, Setting{Policies: []string{"lru"}, Slots: []int{slots}, Equal: true})[0]; o.Hits != want {
			t.Errorf("%d slots: %d hits, reuse distances say %d", slots, o.Hits, want)
		}
	}
}

// The default is no worse than the best of LRU and LFU by more than noise, on the routing of a trained model and on made-up
// ones, and within 16 points of the optimum from a quarter of the experts on.
func TestDefaultIsBest(t *testing.T) {
	const noise = 0.005
	traces := map[string]*Trace{
		"three conversations": open(t, small),
		"zipf":                making(8, 400, skew.Skew{Experts: 64, Used: 8, Zipf: 0.9, Keep: 0.2, Seed: 1}).load(t),
		"keeps":               making(8, 400, skew.Skew{Experts: 64, Used: 8, Zipf: 0.8, Keep: 0.6, Seed: 1}).load(t),
		"storyteller's skew":  making(8, 400, skew.Storyteller(64, 8, 2)).load(t),
	}
	prompts := making(8, 400, skew.Skew{Experts: 64, Used: 8, Zipf: 1, Keep: 0.15, Seed: 1})
	prompts.promptEvery, prompts.promptRows = 60, 128
	traces["prompts"] = prompts.load(t)
	for name, x := range traces {
		out := x.replay(t, Setting{Policies: []string{"lru", "lfu", policy.Default}, Slots: x.sizes(1, 2, 3, 4, 6, 8, 12)})
		for ; len(out) > 0; out = out[3:] {
			best, own := max(out[0].HitRate(), out[1].HitRate()), out[2]
			if own.HitRate() < best-noise {
				t.Errorf("%s, %d slots: %.3f of hits, LRU %.3f, LFU %.3f", name, own.Slots, own.HitRate(), out[0].HitRate(), out[1].HitRate())
			}
			if own.Slots*4 >= x.Header.Layers*x.Header.Experts && own.HitRate() < own.OptimalHitRate()-0.16 {
				t.Errorf("%s, %d slots: %.3f of hits, the optimum has %.3f", name, own.Slots, own.HitRate(), own.OptimalHitRate())
			}
		}
	}
}

// One pool for all layers hits more than shares of layers where few experts are worth keeping: what is worth little passes through slots that
// all layers have together.
func TestOnePool(t *testing.T) {
	x := making(8, 500, skew.Storyteller(64, 8, 1)).load(t)
	out := x.replay(t, Setting{Policies: []string{"lfu", policy.Default}, Slots: x.sizes(2, 4)})
	for i := 0; i < len(out); i += 2 {
		if shares, pool := out[i].HitRate(), out[i+1].HitRate(); pool < shares+0.015 {
			t.Errorf("%d slots: %.3f of hits in one pool, %.3f by shares", out[i].Slots, pool, shares)
		}
	}
}

// Where the long run changes, or recency is worth much and slots are few, the default is better than counting.
func TestDefaultAdapts(t *testing.T) {
	x := making(8, 500, skew.Skew{Experts: 64, Used: 8, Zipf: 0.8, Keep: 0.6, Seed: 1}).load(t)
	out := x.replay(t, Setting{Policies: []string{"lfu", policy.Default}, Slots: x.sizes(2)})
	if out[1].HitRate() < out[0].HitRate()+0.04 {
		t.Errorf("adaptive hits %.3f, LFU %.3f", out[1].HitRate(), out[0].HitRate())
	}
}

// Where what is busy changes, the default is better than both.
func TestDefaultFollows(t *testing.T) {
	m := making(8, 600, skew.Storyteller(64, 8, 1))
	m.routers, m.turnEvery = append(m.routers, skew.New(skew.Storyteller(64, 8, 2)), skew.New(skew.Storyteller(64, 8, 3))), 200
	x := m.load(t)
	out := x.replay(t, Setting{Policies: []string{"lru", "lfu", policy.Default}, Slots: x.sizes(4, 6)})
	for ; len(out) > 0; out = out[3:] {
		if best := max(out[0].HitRate(), out[1].HitRate()); out[2].HitRate() < best+0.015 {
			t.Errorf("%d slots: adaptive hits %.3f, the best of the others %.3f", out[2].Slots, out[2].HitRate(), best)
		}
	}
}

// Shares that follow use beat equal ones where layers differ, and one pool for all layers by the default is no worse.
func TestSharesFollowUse(t *testing.T) {
	m := making(8, 500, skew.Skew{Experts: 64, Used: 8, Zipf: 0.2, Keep: 0.1, Seed: 1})
	m.routers = append(m.routers, skew.New(skew.Skew{Experts: 64, Used: 8, Zipf: 1.5, Keep: 0.1, Seed: 1}))
	x := m.load(t)
	s := Setting{Policies: []string{"lfu", policy.Default}, Slots: x.sizes(12)}
	out := x.replay(t, s)
	measured := out[0].HitRate()
	if all := out[1].HitRate(); all < measured {
		t.Errorf("%.3f of hits by shares, %.3f in one pool", measured, all)
	}
	s.Equal = true
	if equal := x.replay(t, s)[0].HitRate(); measured < equal+0.02 {
		t.Errorf("%.3f of hits, %.3f with equal shares", measured, equal)
	}
}

// One setting of the generator resembles routing that was learnt.
func TestResemblesStoryteller(t *testing.T) {
	real := whole(t)
	x := making(4, real.Steps, skew.Storyteller(32, 4, 1)).load(t)
	s := Setting{Policies: []string{"lru", "lfu", policy.Default}, Slots: real.sizes(1, 2, 3, 4, 6, 8, 10, 12, 14)}
	a, b := real.replay(t, s), x.replay(t, s)
	for i := range a {
		for _, pair := range [][2]float64{{a[i].HitRate(), b[i].HitRate()}, {a[i].OptimalHitRate(), b[i].OptimalHitRate()}} {
			if d := pair[0] - pair[1]; max(d, -d) > 0.04 {
				t.Errorf("%s with %d slots: hits %.3f, made up %.3f", a[i].Policy, a[i].Slots, pair[0], pair[1])
			}
		}
	}
}

func TestReplayRefuses(t *testing.T) {
	x := open(t, small)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		s    Setting
		want string
	}{
		"slots":    {context.Background(), Setting{Policies: []string{"lru"}, Slots: []int{0}}, "0 slots"},
		"policy":   {context.Background(), Setting{Policies: []string{"mru"}, Slots: []int{4}}, `no policy "mru"`},
		"profile":  {context.Background(), Setting{Policies: []string{"static"}, Slots: []int{4}, Profile: make([]int64, 3)}, "a profile of"},
		"canceled": {ctx, Setting{Policies: []string{"lru"}, Slots: []int{4}}, context.Canceled.Error()},
	} {
		if _, err := x.Replay(c.ctx, c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The page is one well-formed document that needs nothing from elsewhere, and a name cannot break out of its text.
func TestPage(t *testing.T) {
	x := open(t, small)
	x.Header.Model.Name = `</table><script>alert("1")</script>&` + "\xff\x00"
	x.Header.ExpertBytes = []int64{1 << 20, 1 << 20, 2 << 20, 1 << 20}
	out := x.replay(t, Setting{Policies: policies, Slots: x.sizes(2, 4, 8)})
	var page bytes.Buffer
	if err := x.Page(&page, `<b>"x"`, out); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, bad := range []string{"<script", "<b>", "http:", "https:", "src=", "url(", "NaN", "%!", "\x00"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"&lt;script&gt;", "belady", "adaptive", "160 MiB in all", "Reuse distance"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	counts, err := elements(text)
	if err != nil {
		t.Fatal(err)
	}
	if counts["svg"] != 4 || counts["tr"] != 4+1+len(out) {
		t.Errorf("%v", counts)
	}
}

// elements counts them; everything that is opened must be closed.
func elements(text string) (map[string]int, error) {
	counts := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = true
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counts, nil
		}
		if err != nil {
			return counts, fmt.Errorf("%w in line %d", err, 1+strings.Count(text[:d.InputOffset()], "\n"))
		}
		if e, ok := token.(xml.StartElement); ok {
			counts[e.Name.Local]++
		}
	}
}

// A page of few or no steps has no division by nothing.
func TestPageOfLittle(t *testing.T) {
	x, err := load(sealed(`{"format":"spillway-trace","version":1,"model":{},"layers":1,"experts":1,"used":1}`, nil, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := x.Page(&page, "x", x.replay(t, Setting{Policies: policies, Slots: []int{1}})); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "NaN") {
		t.Error("NaN")
	}
	if !slices.Contains(policies, policy.Default) {
		t.Error("there is no default")
	}
}
