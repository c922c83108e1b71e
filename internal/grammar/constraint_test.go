package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// wordTokens is a small vocabulary: ids are places in the list; "" and texts in angle brackets are control tokens.
type wordTokens []string

func (w wordTokens) Size() int                      { return len(w) }
func (w wordTokens) Bytes(id int32) ([]byte, error) { return []byte(w[id]), nil }
func (w wordTokens) IsSpecial(id int32) bool        { return strings.HasPrefix(w[id], "<") }
func (w wordTokens) ID(token string) (int32, bool) {
	i := slices.Index(w, token)
	return int32(i), i >= 0
}

// abTokens is texts over a, b and c up to a length, some left out, some twice.
func abTokens(rng *rand.Rand, most int) wordTokens {
	w := wordTokens{"<end>", "<tool>", "", "<eot>"}
	for _, text := range abTexts(most) {
		for range []int{1, 1, 1, 0, 2, 1}[rng.IntN(6)] {
			w = append(w, text)
		}
	}
	rng.Shuffle(len(w)-4, func(i, j int) { w[i+4], w[j+4] = w[j+4], w[i+4] })
	return w
}

func abTexts(most int) []string {
	out := []string{"a", "b", "c"}
	for i := 0; len(out[i]) < most; i++ {
		out = append(out, out[i]+"a", out[i]+"b", out[i]+"c")
	}
	return out
}

// randomGrammar is a grammar over a, b and the control token 1.
func randomGrammar(rng *rand.Rand) (*cfg.Grammar, error) {
	b := cfg.New(cfg.Limits{})
	rules := make([]cfg.Rule, 1+rng.IntN(4))
	for i := range rules {
		rules[i] = b.NewRule(fmt.Sprintf("r%d", i))
	}
	var expr func(depth int) cfg.Expr
	expr = func(depth int) cfg.Expr {
		if depth == 0 {
			switch rng.IntN(8) {
			case 0:
				return b.Bytes("a")
			case 1:
				return b.Bytes("b")
			case 2:
				return b.Bytes("ab")
			case 3:
				return b.Byte('a', 'b')
			case 4:
				return b.Alt(b.Token(1), b.Bytes("c"))
			case 5:
				return b.Seq()
			}
			return b.Ref(rules[rng.IntN(len(rules))])
		}
		switch rng.IntN(6) {
		case 0, 1, 2:
			return b.Seq(expr(depth-1), expr(depth-1))
		case 3:
			return b.Alt(expr(depth-1), expr(depth-1))
		}
		lo := rng.IntN(4)
		hi := lo + rng.IntN(9)
		if rng.IntN(3) == 0 {
			hi = -1
		}
		return b.Repeat(expr(depth-1), lo, hi)
	}
	for _, r := range rules {
		b.Define(r, b.Alt(expr(1+rng.IntN(3)), expr(rng.IntN(3))))
	}
	return b.Grammar(b.Ref(rules[0]))
}

// naive is the mask by definition: a token may come if it can be accepted.
func naive(m *Matcher, v *Vocabulary) []uint64 {
	mask := make([]uint64, v.Words())
	for id := range int32(v.Size()) {
		c := m.Clone()
		if v.Control(id) {
			if c.Accept(id) == nil {
				setBit(mask, id)
			}
			continue
		}
		if text, ok := v.text(id); ok && c.AcceptBytes(text) == nil {
			setBit(mask, id)
		}
	}
	return mask
}

func idsOf(mask []uint64) []int32 {
	var out []int32
	for id := range int32(64 * len(mask)) {
		if mask[id/64]>>(id%64)&1 != 0 {
			out = append(out, id)
		}
	}
	return out
}

func TestMasksOfRandomGrammars(t *testing.T) {
	steps := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		g, err := randomGrammar(rng)
		if err != nil {
			continue
		}
		words := abTokens(rng, 4)
		v, err := NewVocabulary(words, []int32{0, 3}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewConstraint(g, v)
		if err != nil {
			t.Fatal(err)
		}
		steps += randomAnswer(t, rng, c, words, fmt.Sprintf("seed %d", seed))
	}
	if steps < 1000 {
		t.Fatalf("only %d steps", steps)
	}
}

// randomAnswer draws tokens from masks and checks every mask; it returns the number of tokens.
func randomAnswer(t *testing.T, rng *rand.Rand, c *Constraint, words wordTokens, what string) int {
	t.Helper()
	m := c.Matcher()
	mask := make([]uint64, c.vocab.Words())
	var text []string
	for step := range 10 {
		m.Mask(mask)
		got := idsOf(mask)
		if want := idsOf(naive(m, c.vocab)); !slices.Equal(got, want) {
			t.Fatalf("%s after %q: mask %s, want %s", what, text, names(words, got), names(words, want))
		}
		id, forced := m.Forced()
		if forced != (len(got) == 1 && !c.vocab.isEnd(got[0])) || forced && id != got[0] {
			t.Fatalf("%s after %q: forced %d %v of %v", what, text, id, forced, got)
		}
		if len(got) == 0 { // the vocabulary lacks what the grammar goes on with
			return step
		}
		id = got[rng.IntN(len(got))]
		if err := m.Accept(id); err != nil {
			t.Fatalf("%s after %q: token %q of the mask: %v", what, text, words[id], err)
		}
		text = append(text, words[id])
	}
	return 10
}

func names(words wordTokens, ids []int32) string {
	var out []string
	for _, id := range ids {
		out = append(out, words[id])
	}
	return fmt.Sprintf("%q", out)
}

func TestRollbackIsReplay(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		g, err := randomGrammar(rng)
		if err != nil {
			continue
		}
		v, _ := NewVocabulary(abTokens(rng, 4), []int32{0}, nil)
		c, err := NewConstraint(g, v)
		if err != nil {
			t.Fatal(err)
		}
		m := c.Matcher()
		var history []int32
		mask, again := make([]uint64, v.Words()), make([]uint64, v.Words())
		for range 30 {
			if rng.IntN(3) == 0 && len(history) > 0 {
				n := 1 + rng.IntN(len(history))
				m.Rollback(n)
				history = history[:len(history)-n]
			}
			m.Mask(mask)
			fresh := c.Matcher()
			for _, id := range history {
				if err := fresh.Accept(id); err != nil {
					t.Fatal(err)
				}
			}
			if fresh.Mask(again); !slices.Equal(mask, again) || fresh.MayEnd() != m.MayEnd() {
				t.Fatalf("seed %d: after a rollback to %v the mask differs", seed, history)
			}
			ids := idsOf(mask)
			if len(ids) == 0 {
				m.Rollback(len(history))
				history = nil
				continue
			}
			id := ids[rng.IntN(len(ids))]
			if err := m.Accept(id); err != nil {
				t.Fatal(err)
			}
			history = append(history, id)
		}
	}
}

// AcceptBytes goes on by text as if it were one token.
func (m *Matcher) AcceptBytes(text []byte) error {
	machine := m.lock()
	defer m.c.mu.Unlock()
	if m.now() == ended {
		return errEnded
	}
	to, n := step(machine, m.now(), text)
	if to == cfg.Dead {
		if err := limitOf(machine); err != nil {
			return err
		}
		return fmt.Errorf("grammar: byte %d of %q may not come here", n, text)
	}
	m.states = append(m.states, to)
	return nil
}
