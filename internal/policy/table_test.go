package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// board is the table of one text file under testdata/table.
type board struct {
	table *Table
	shape Shape
}

func TestTable(t *testing.T) {
	datadriven.Walk(t, "testdata/table", func(t *testing.T, path string) {
		var b board
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				b.new(t, d)
			case "quotas":
				b.table.SetQuotas(ints(t, d.Input))
			case "give":
				for _, s := range ints(t, d.Input) {
					b.table.Give(s)
				}
			case "take":
				return fmt.Sprintln(b.table.Take()) + b.state()
			case "visit":
				return b.visit(t, d) + b.state()
			case "load":
				return b.load(t, d) + b.state()
			case "release":
				for _, s := range ints(t, d.Input) {
					b.table.Release(s)
				}
			case "discard":
				for _, s := range ints(t, d.Input) {
					b.table.Discard(s)
				}
			case "rebalance":
				var transit int
				d.ScanArgs(t, "transit", &transit)
				b.table.Rebalance(transit)
				return fmt.Sprintln("quotas", b.table.Quotas())
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return b.state()
		})
	})
}

func ints(t *testing.T, text string) (out []int) {
	t.Helper()
	for _, f := range strings.Fields(text) {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// new layers=… experts=… rule=… [window=…], with the profile as input
func (b *board) new(t *testing.T, d *datadriven.TestData) {
	var name string
	d.ScanArgs(t, "layers", &b.shape.Layers)
	d.ScanArgs(t, "experts", &b.shape.Experts)
	d.ScanArgs(t, "rule", &name)
	var profile []int64
	for _, n := range ints(t, d.Input) {
		profile = append(profile, int64(n))
	}
	rule, err := New(name, b.shape, profile)
	if err != nil {
		t.Fatal(err)
	}
	b.table = NewTable(b.shape, rule)
	d.MaybeScanArgs(t, "window", &b.table.Window)
}

// visit layer=… [prompt] with experts as input, several lines for several visits: says the slots.
func (b *board) visit(t *testing.T, d *datadriven.TestData) string {
	var layer int
	d.ScanArgs(t, "layer", &layer)
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		v := visitOf(ints(t, line), d.HasArg("prompt"))
		slots := make([]int32, len(v.Demands))
		fmt.Fprintln(&out, "hits", b.table.Visit(layer, v, slots), "slots", slots)
	}
	return out.String()
}

func visitOf(experts []int, prompt bool) Visit {
	v := Visit{Decode: 1}
	if prompt {
		v = Visit{Prefill: 1}
	}
	for _, e := range experts {
		v.Demands = append(v.Demands, Demand{int32(e), v.Decode, v.Prefill})
	}
	return v
}

// load layer=… with experts as input
func (b *board) load(t *testing.T, d *datadriven.TestData) string {
	var layer int
	d.ScanArgs(t, "layer", &layer)
	var out strings.Builder
	for _, e := range ints(t, d.Input) {
		fmt.Fprint(&out, "expert ", e)
		if slot, ok := b.table.Load(layer, e); ok {
			fmt.Fprintln(&out, " into slot", slot)
		} else {
			fmt.Fprintln(&out, " waits")
		}
	}
	return out.String()
}

// state lists what the slots hold; a star is in use.
func (b *board) state() string {
	var out []string
	for s, at := range b.table.holds {
		text := ""
		switch at {
		case gone:
			continue
		case empty:
			text = "–"
		case stale:
			text = "x"
		default:
			text = fmt.Sprintf("%d.%d", int(at)/b.shape.Experts, int(at)%b.shape.Experts)
		}
		if b.table.users[s] > 0 {
			text += "*"
		}
		out = append(out, fmt.Sprintf("%d:%s", s, text))
	}
	if out == nil {
		return "no slots\n"
	}
	return strings.Join(out, " ") + "\n"
}

// TestRules shows in which order experts would go after some visits to a layer.
func TestRules(t *testing.T) {
	datadriven.Walk(t, "testdata/rules", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var s Shape
			var name string
			s.Layers = 1
			d.ScanArgs(t, "experts", &s.Experts)
			d.ScanArgs(t, "rule", &name)
			profile := make([]int64, s.Experts)
			for i := range profile {
				profile[i] = int64(i * 7 % s.Experts)
			}
			rule, err := New(name, s, profile)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(d.Input) {
				observe(t, rule, line)
			}
			order := make([]int, s.Experts)
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(a, b int) int {
				return int(max(-1, min(1, rule.Worth(0, a)-rule.Worth(0, b))))
			})
			return fmt.Sprintln("first to go", order)
		})
	})
}

// observe takes a line such as "20 × 1 2", "prompt 3 4", "prompt/100 1×90 2×10": times, kind, experts and their rows.
func observe(t *testing.T, rule Rule, line string) {
	t.Helper()
	times := 1
	if n, rest, ok := strings.Cut(line, " × "); ok {
		times, line = ints(t, n)[0], rest
	}
	for range times {
		v := Visit{Decode: 1}
		for _, f := range strings.Fields(line) {
			if rows, ok := strings.CutPrefix(f, "prompt/"); ok {
				v = Visit{Prefill: int32(ints(t, rows)[0])}
				continue
			}
			expert, rows, ok := strings.Cut(f, "×")
			d := Demand{int32(ints(t, expert)[0]), v.Decode, v.Prefill}
			if ok {
				d.Prefill = int32(ints(t, rows)[0])
			}
			v.Demands = append(v.Demands, d)
		}
		rule.Observe(0, v)
	}
}

// TestTableAlways runs random visits, loads, failures and resizes against what must hold at every moment.
func TestTableAlways(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt)
		for range rapid.IntRange(1, 60).Draw(rt, "operations") {
			switch rapid.IntRange(0, 5).Draw(rt, "operation") {
			case 0:
				m.resize(rt)
			case 1:
				m.fail(rt)
			case 2:
				m.table.Rebalance(rapid.IntRange(0, 4).Draw(rt, "transit"))
			default:
				m.visit(rt)
			}
			m.check(rt)
		}
	})
}

// machine is a table with a second book of what it must hold.
type machine struct {
	shape Shape
	table *Table
	given map[int]bool
	using []int        // slots, once for each use
	in    map[int]int  // slot → layer × experts + expert of what is in use
	lost  map[int]bool // slots in use whose content was discarded
}

func newMachine(rt *rapid.T) *machine {
	m := &machine{given: map[int]bool{}, in: map[int]int{}, lost: map[int]bool{}}
	m.shape = Shape{rapid.IntRange(1, 3).Draw(rt, "layers"), rapid.IntRange(1, 9).Draw(rt, "experts")}
	rule, err := New(rapid.SampledFrom(Names()).Draw(rt, "rule"), m.shape, make([]int64, m.shape.all()))
	if err != nil {
		rt.Fatal(err)
	}
	m.table = NewTable(m.shape, rule)
	m.table.Window = rapid.IntRange(0, 3).Draw(rt, "window")
	return m
}

func (m *machine) resize(rt *rapid.T) {
	if rapid.Bool().Draw(rt, "grow") {
		if slot := rapid.IntRange(0, 11).Draw(rt, "slot"); !m.given[slot] {
			m.table.Give(slot)
			m.given[slot] = true
		}
		return
	}
	slot, ok := m.table.Take()
	if !ok {
		if len(m.using) == 0 && len(m.given) > 0 {
			rt.Fatal("nothing is in use, and no slot can be taken")
		}
		return
	}
	if !m.given[slot] || slices.Contains(m.using, slot) {
		rt.Fatalf("slot %d is taken; given are %v, in use %v", slot, m.given, m.using)
	}
	delete(m.given, slot)
}

func (m *machine) fail(rt *rapid.T) {
	if len(m.using) == 0 {
		return
	}
	slot := rapid.SampledFrom(m.using).Draw(rt, "failed slot")
	m.table.Discard(slot)
	m.lost[slot] = true
}

// visit goes through a layer and leaves some of its experts in use.
func (m *machine) visit(rt *rapid.T) {
	layer := rapid.IntRange(0, m.shape.Layers-1).Draw(rt, "layer")
	experts := rapid.SliceOfNDistinct(rapid.IntRange(0, m.shape.Experts-1), 1, -1, rapid.ID).Draw(rt, "experts")
	v := visitOf(experts, rapid.Bool().Draw(rt, "prompt"))
	slots := make([]int32, len(experts))
	hits := m.table.Visit(layer, v, slots)
	for i, e := range experts {
		if slots[i] >= 0 {
			m.use(rt, int(slots[i]), layer*m.shape.Experts+e)
			hits--
		}
	}
	if hits != 0 {
		rt.Fatalf("%d hits more than slots", hits)
	}
	for i, e := range experts {
		if slots[i] >= 0 {
			continue
		}
		if slot, ok := m.table.Load(layer, e); ok {
			m.use(rt, slot, layer*m.shape.Experts+e)
		} else if len(m.using) == 0 && len(m.given) > 0 {
			rt.Fatal("nothing is in use, and no slot can be loaded")
		}
	}
	for len(m.using) > 0 && rapid.IntRange(0, 3).Draw(rt, "release") > 0 {
		m.release(rapid.IntRange(0, len(m.using)-1).Draw(rt, "which"))
	}
}

func (m *machine) use(rt *rapid.T, slot, at int) {
	if was, ok := m.in[slot]; ok && was != at || m.lost[slot] {
		rt.Fatalf("slot %d is in use by %d, now it is for %d", slot, was, at)
	}
	m.in[slot] = at
	m.using = append(m.using, slot)
}

func (m *machine) release(i int) {
	slot := m.using[i]
	m.using = slices.Delete(m.using, i, i+1)
	m.table.Release(slot)
	if !slices.Contains(m.using, slot) {
		delete(m.in, slot)
		delete(m.lost, slot)
	}
}

func (m *machine) check(rt *rapid.T) {
	if m.table.Slots() != len(m.given) {
		rt.Fatalf("%d slots, %d were given", m.table.Slots(), len(m.given))
	}
	for slot, at := range m.in {
		if got, ok := m.table.Holds(at/m.shape.Experts, at%m.shape.Experts); !m.lost[slot] && (!ok || got != slot) {
			rt.Fatalf("slot %d is in use by %d, which is in %d", slot, at, got)
		}
	}
	held, seen := 0, map[int]bool{}
	for l := range m.shape.Layers {
		held += m.table.Held(l)
		for e := range m.shape.Experts {
			if slot, ok := m.table.Holds(l, e); ok {
				if seen[slot] || !m.given[slot] {
					rt.Fatalf("slot %d holds two experts, or is gone", slot)
				}
				seen[slot] = true
			}
		}
	}
	if held != len(seen) || held+len(m.table.empty) > len(m.given) {
		rt.Fatalf("%d experts are held, in %d slots; %d slots are empty of %d", held, len(seen), len(m.table.empty), len(m.given))
	}
}

// TestNoAllocation holds decisions to what the package promises.
func TestNoAllocation(t *testing.T) {
	shape := Shape{4, 64}
	for _, name := range Names() {
		rule, err := New(name, shape, make([]int64, shape.all()))
		if err != nil {
			t.Fatal(err)
		}
		table := NewTable(shape, rule)
		table.Window = 8
		for i := range 80 {
			table.Give(i)
		}
		v := visitOf([]int{0, 1, 2, 3, 4, 5, 6, 7}, false)
		slots := make([]int32, 8)
		step := 0
		if n := testing.AllocsPerRun(200, func() {
			for i := range v.Demands {
				v.Demands[i].Expert = int32((step*5 + i*7) % 64)
			}
			step++
			table.Visit(step%4, v, slots)
			for i, s := range slots {
				slot := int(s)
				if s < 0 {
					slot, _ = table.Load(step%4, int(v.Demands[i].Expert))
				}
				slots[i] = int32(slot)
			}
			for _, s := range slots {
				table.Release(int(s))
			}
			if step%64 == 0 {
				table.Rebalance(4)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations for a visit", name, n)
		}
	}
}

// A prompt that needs every expert of a layer turns no more than the window over, whatever its order.
func TestScanResistance(t *testing.T) {
	shape := Shape{1, 64}
	for _, c := range []struct {
		rule string
		kept int // of the 16 hot experts, at least
	}{{"adaptive", 12}, {"lfu", 12}, {"static", 12}} {
		profile := make([]int64, 64)
		for i := range 16 {
			profile[i] = 1
		}
		rule, err := New(c.rule, shape, profile)
		if err != nil {
			t.Fatal(err)
		}
		table := NewTable(shape, rule)
		table.Window = 4
		for i := range 16 {
			table.Give(i)
		}
		play := func(v Visit) { playVisit(table, 0, v) }
		for i := range 64 {
			play(visitOf([]int{i % 16, (i + 5) % 16, (i + 9) % 16, (i + 14) % 16}, false))
		}
		all := make([]int, 64)
		for i := range all {
			all[i] = 63 - i
		}
		play(visitOf(all, true))
		kept := 0
		for e := range 16 {
			if _, ok := table.Holds(0, e); ok {
				kept++
			}
		}
		if kept < c.kept {
			t.Errorf("%s: %d of 16 experts are left after a prompt, want %d", c.rule, kept, c.kept)
		}
	}
}

// playVisit is a visit as the pager makes it: what is there is computed first.
func playVisit(table *Table, layer int, v Visit) (hits int) {
	slots := make([]int32, len(v.Demands))
	hits = table.Visit(layer, v, slots)
	var using []int
	for _, s := range slots {
		if s >= 0 {
			using = append(using, int(s))
		}
	}
	for i, d := range v.Demands {
		if slots[i] >= 0 {
			continue
		}
		slot, ok := table.Load(layer, int(d.Expert))
		for !ok {
			table.Release(using[0])
			using = using[1:]
			slot, ok = table.Load(layer, int(d.Expert))
		}
		using = append(using, slot)
	}
	for _, s := range using {
		table.Release(s)
	}
	return hits
}

func TestWrongRules(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"fifo", `there is no policy "fifo"; there are static, lru, lfu, adaptive`},
		{"static", "policy static needs a profile of 2 layers with 3 experts, not of 5 figures"},
	} {
		if _, err := New(c.name, Shape{2, 3}, make([]int64, 5)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Empty slots take what a layer with room in its quota misses most, and nothing is displaced for it.
func TestLoadEmpty(t *testing.T) {
	profile := []int64{0, 3, 1, 2, 5, 4, 0, 9}
	s := Shape{Layers: 2, Experts: 4}
	rule, err := New("static", s, profile)
	if err != nil {
		t.Fatal(err)
	}
	table := NewTable(s, rule)
	table.SetQuotas([]int{1, 2})
	for i := range 5 {
		table.Give(i)
	}
	var got []int
	for table.Empty() > 0 {
		layer, expert, ok := table.Missing()
		if !ok {
			t.Fatal("nothing is missing")
		}
		slot, ok := table.LoadEmpty(layer, expert)
		if !ok {
			t.Fatalf("no slot for expert %d of layer %d", expert, layer)
		}
		table.Release(slot)
		got = append(got, layer*10+expert)
	}
	if want := []int{13, 1, 10, 3, 11}; !slices.Equal(got, want) {
		t.Errorf("loaded %v, want %v", got, want)
	}
	if _, ok := table.LoadEmpty(0, 0); ok || table.Held(0) != 2 || table.Held(1) != 3 {
		t.Errorf("an expert was displaced: %d and %d are held", table.Held(0), table.Held(1))
	}
	for i := 5; i < 8; i++ {
		table.Give(i)
	}
	for layer, expert, ok := table.Missing(); ok; layer, expert, ok = table.Missing() {
		table.LoadEmpty(layer, expert)
	}
	if n := table.Held(0) + table.Held(1); n != 8 || table.Empty() != 0 {
		t.Errorf("%d experts are held, %d slots empty", n, table.Empty())
	}
}

// What goes first is what a look at all experts finds, whatever came and went before.
func TestCheapest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Shape{Layers: rapid.IntRange(1, 4).Draw(t, "layers"), Experts: rapid.IntRange(2, 8).Draw(t, "experts")}
		table := NewTable(s, newAdaptive(s))
		table.Window = rapid.IntRange(1, s.Experts).Draw(t, "window")
		table.SetQuotas(Equal(s, 0))
		slots := s.Layers*table.Window + rapid.IntRange(0, s.all()).Draw(t, "slots")
		for i := range slots {
			table.Give(i)
		}
		for range rapid.IntRange(1, 40).Draw(t, "visits") {
			layer := rapid.IntRange(0, s.Layers-1).Draw(t, "layer")
			v := Visit{Decode: 1}
			for _, e := range rapid.Permutation(ordered(s.Experts)).Draw(t, "experts")[:rapid.IntRange(1, table.Window).Draw(t, "used")] {
				v.Demands = append(v.Demands, Demand{Expert: int32(e), Decode: 1})
			}
			use := make([]int32, len(v.Demands))
			table.Visit(layer, v, use)
			for i, slot := range use {
				if slot >= 0 {
					continue
				}
				want := table.naive(layer)
				full := table.Empty() == 0
				got, ok := table.Load(layer, int(v.Demands[i].Expert))
				if !ok {
					t.Fatalf("no slot, although no more are in use than a row needs")
				}
				if full && int32(got) != want {
					t.Fatalf("slot %d was emptied, not %d", got, want)
				}
				use[i] = int32(got)
			}
			for _, slot := range use {
				if rapid.IntRange(0, 9).Draw(t, "discard") == 0 {
					table.Discard(int(slot))
				}
				table.Release(int(slot))
			}
		}
	})
}

func ordered(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// naive is the slot of the idle expert of least weighed worth; of equal ones that of the layer that comes last, then the first.
func (t *Table) naive(layer int) int32 {
	best, least := int32(none), int64(0)
	for i := range t.shape.Layers {
		l := (layer + t.shape.Layers - i) % t.shape.Layers
		for e := range t.shape.Experts {
			slot := t.where[l*t.shape.Experts+e]
			if slot < 0 || t.users[slot] > 0 {
				continue
			}
			w := t.rule.Worth(l, e)
			if w += w * int64(i) * (soon - 1) / int64(t.shape.Layers); best == none || w < least {
				best, least = slot, w
			}
		}
	}
	return best
}
