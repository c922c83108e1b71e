package cfg

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// reference decides membership by the definition: ends[e][i] are the places where e may end that began
// at i, grown until nothing changes.
type reference struct {
	b    *Builder
	text string
	ends map[[2]int]map[int]bool
	grew bool
}

func matches(b *Builder, start Expr, text string) bool {
	r := &reference{b: b, text: text, ends: map[[2]int]map[int]bool{}}
	for {
		r.grew = false
		got := r.of(start, 0, map[[2]int]bool{})
		if !r.grew {
			return got[len(text)]
		}
	}
}

func (r *reference) of(e Expr, i int, busy map[[2]int]bool) map[int]bool {
	key := [2]int{int(e), i}
	if r.ends[key] == nil {
		r.ends[key] = map[int]bool{}
	}
	if busy[key] {
		return r.ends[key]
	}
	busy[key] = true
	add := func(j int) {
		if !r.ends[key][j] {
			r.ends[key][j] = true
			r.grew = true
		}
	}
	n := r.b.nodes[e]
	switch n.kind {
	case kEmpty:
		add(i)
	case kBytes:
		if strings.HasPrefix(r.text[i:], n.text) {
			add(i + len(n.text))
		}
	case kByte:
		if i < len(r.text) && int32(r.text[i]) >= n.x && int32(r.text[i]) <= n.y {
			add(i + 1)
		}
	case kAlt:
		for _, a := range n.args {
			for j := range r.of(Expr(a), i, busy) {
				add(j)
			}
		}
	case kRef:
		for j := range r.of(r.b.rules[n.x].body, i, busy) {
			add(j)
		}
	case kSeq:
		at := map[int]bool{i: true}
		for _, a := range n.args {
			at = r.after(Expr(a), at, busy)
		}
		for j := range at {
			add(j)
		}
	case kRepeat:
		r.repeat(&n, i, busy, add)
	}
	return r.ends[key]
}

func (r *reference) after(e Expr, at map[int]bool, busy map[[2]int]bool) map[int]bool {
	out := map[int]bool{}
	for i := range at {
		for j := range r.of(e, i, busy) {
			out[j] = true
		}
	}
	return out
}

func (r *reference) repeat(n *node, i int, busy map[[2]int]bool, add func(int)) {
	at := map[int]bool{i: true}
	for k := int32(0); len(at) > 0 && (n.y < 0 || k <= n.y) && k <= n.x+int32(len(r.text))+1; k++ {
		if k >= n.x {
			for j := range at {
				add(j)
			}
		}
		at = r.after(Expr(n.args[0]), at, busy)
	}
}

// randomGrammar makes a grammar over a and b; it may be ambiguous, left-recursive and more.
func randomGrammar(rng *rand.Rand) (*Builder, Expr) {
	b := New(Limits{})
	rules := make([]Rule, 1+rng.IntN(4))
	for i := range rules {
		rules[i] = b.NewRule(fmt.Sprintf("r%d", i))
	}
	var expr func(depth int) Expr
	expr = func(depth int) Expr {
		if depth == 0 {
			return []Expr{b.Bytes("a"), b.Bytes("b"), b.Bytes("ab"), b.Byte('a', 'b'), b.Seq(), b.Ref(rules[rng.IntN(len(rules))])}[rng.IntN(6)]
		}
		switch rng.IntN(5) {
		case 0, 1:
			return b.Seq(expr(depth-1), expr(depth-1))
		case 2:
			return b.Alt(expr(depth-1), expr(depth-1))
		case 3:
			lo := rng.IntN(3)
			hi := lo + rng.IntN(6)
			if rng.IntN(2) == 0 {
				hi = -1
			}
			return b.Repeat(expr(depth-1), lo, hi)
		}
		return expr(depth - 1)
	}
	for _, r := range rules {
		b.Define(r, b.Alt(expr(1+rng.IntN(3)), expr(rng.IntN(3))))
	}
	return b, b.Ref(rules[0])
}

func texts(n int) []string {
	out := []string{""}
	for i := 0; len(out[i]) < n; i++ {
		out = append(out, out[i]+"a", out[i]+"b")
	}
	return out
}

// TestRandomGrammars compares the machine with the definition, and asks that from every Config that is
// not Dead some text leads to an end.
func TestRandomGrammars(t *testing.T) {
	all := texts(6)
	done := 0
	for seed := range uint64(600) {
		b, start := randomGrammar(rand.New(rand.NewPCG(seed, 8)))
		g, err := b.Grammar(start)
		if err != nil {
			if !strings.Contains(err.Error(), "matches no text") && !strings.Contains(err.Error(), "counted repetition") {
				t.Fatal(seed, err)
			}
			continue
		}
		done++
		m := g.NewMachine()
		at := map[string]Config{"": m.Start()}
		for _, text := range all {
			if text != "" {
				at[text] = m.Step(at[text[:len(text)-1]], text[len(text)-1])
			}
			if got, want := m.MayEnd(at[text]), matches(b, start, text); got != want {
				t.Fatalf("seed %d: %q: ends %v, want %v\n%s", seed, text, got, want, showRules(b))
			}
			if at[text] != Dead && !completes(m, at[text]) {
				t.Fatalf("seed %d: %q: nothing completes it\n%s", seed, text, showRules(b))
			}
		}
		if m.Err() != nil {
			t.Fatal(seed, m.Err())
		}
	}
	if done < 300 {
		t.Fatalf("only %d grammars", done)
	}
}

func completes(m *Machine, c Config) bool {
	seen := map[Config]bool{c: true}
	for queue := []Config{c}; len(queue) > 0 && len(seen) < 100000; {
		c, queue = queue[0], queue[1:]
		if m.MayEnd(c) {
			return true
		}
		for _, to := range []Config{m.Row(c)[m.g.class['a']].Config(), m.Step(c, 'b')} {
			if to != Dead && !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return false
}

// TestParts walks texts through parts and compares with whole Configs.
func TestParts(t *testing.T) {
	for seed := range uint64(400) {
		b, start := randomGrammar(rand.New(rand.NewPCG(seed, 9)))
		g, err := b.Grammar(start)
		if err != nil {
			continue
		}
		m := g.NewMachine()
		for _, first := range texts(4) {
			c := m.Start()
			for i := range len(first) {
				c = m.Step(c, first[i])
			}
			for _, then := range texts(4)[1:] {
				want := c
				for i := range len(then) {
					want = m.Step(want, then[i])
				}
				if got := viable(m, c, then); got != (want != Dead) {
					t.Fatalf("seed %d: %q then %q: viable %v by parts", seed, first, then, got)
				}
			}
		}
	}
}

func viable(m *Machine, c Config, text string) bool {
	if text == "" {
		return c != Dead
	}
	for _, p := range m.Factor(nil, c) {
		if partViable(m, p, text) {
			return true
		}
	}
	return false
}

func partViable(m *Machine, p Part, text string) bool {
	c := p.Config
	for i := range len(text) {
		n := m.Row(c)[m.Classes()[text[i]]]
		c = n.Config()
		if c == Dead || p.Counted && m.Cost(c) > p.Most {
			return false
		}
		for _, l := range m.Leaves(c) {
			if !p.Counted || l >= p.Least && l <= p.Most {
				if p.Below == bottom && i < len(text)-1 {
					continue
				}
				if i == len(text)-1 || viable(m, m.Pop(p.Below), text[i+1:]) {
					return true
				}
			}
		}
	}
	return m.configs[c].n > 0
}

// show writes an expression down.
func show(b *Builder, e Expr) string {
	n := b.nodes[e]
	var parts []string
	if n.hasParts() {
		for _, a := range n.args {
			parts = append(parts, show(b, Expr(a)))
		}
	}
	switch n.kind {
	case kNothing:
		return "∅"
	case kEmpty:
		return "ε"
	case kBytes:
		return fmt.Sprintf("%q", n.text)
	case kByte:
		return fmt.Sprintf("[%c-%c]", n.x, n.y)
	case kRef:
		return b.rules[n.x].name
	case kAlt:
		return "(" + strings.Join(parts, " | ") + ")"
	case kRepeat:
		return fmt.Sprintf("%s{%d,%d}", parts[0], n.x, n.y)
	}
	return "(" + strings.Join(parts, " ") + ")"
}

func showRules(b *Builder) string {
	var out []string
	for _, r := range b.rules {
		out = append(out, r.name+" = "+show(b, r.body))
	}
	return strings.Join(out, "\n")
}
