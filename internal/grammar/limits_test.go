package grammar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// byteTokens is one token for each byte, and some words.
func byteTokens(more ...string) wordTokens {
	w := wordTokens{"<end>"}
	for b := range 256 {
		if b != '<' {
			w = append(w, string([]byte{byte(b)}))
		}
	}
	return append(w, more...)
}

func mustVocabulary(t testing.TB, w wordTokens) *Vocabulary {
	t.Helper()
	v, err := NewVocabulary(w, []int32{0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func jsonConstraint(t testing.TB, v *Vocabulary, l cfg.Limits) *Constraint {
	t.Helper()
	b := cfg.New(l)
	g, err := b.Grammar(jsonGrammar(b))
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewConstraint(g, v)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRenewal lets a machine run out of memory again and again: nothing changes but that it begins anew.
func TestRenewal(t *testing.T) {
	v := mustVocabulary(t, byteTokens(`{"`, `":`, `"}`, `}}`, `]]`, `[[`, `, "`, "true", "ab"))
	small, large := jsonConstraint(t, v, cfg.Limits{Memory: 24 << 10}), jsonConstraint(t, v, cfg.Limits{})
	a, b := small.Matcher(), large.Matcher()
	first := small.gen
	if err := errors.Join(a.AcceptBytes([]byte("[")), b.AcceptBytes([]byte("["))); err != nil {
		t.Fatal(err)
	}
	x, y := make([]uint64, v.Words()), make([]uint64, v.Words())
	rng := rand.New(rand.NewPCG(1, 1))
	for step := range 3000 {
		if a.MayEnd() != b.MayEnd() {
			t.Fatalf("step %d: the end differs", step)
		}
		a.Mask(x)
		b.Mask(y)
		if !slices.Equal(x, y) {
			t.Fatalf("step %d: masks differ: %s and %s", step, names(v.tokens.(wordTokens), idsOf(x)), names(v.tokens.(wordTokens), idsOf(y)))
		}
		ids := idsOf(x)
		if ids[0] == 0 {
			ids = ids[1:]
		}
		if len(ids) == 0 || rng.IntN(20) == 0 {
			n := min(1+rng.IntN(40), len(a.states)-2)
			a.Rollback(n)
			b.Rollback(n)
			continue
		}
		id := ids[rng.IntN(len(ids))]
		if err := errors.Join(a.Accept(id), b.Accept(id)); err != nil {
			t.Fatal(err)
		}
	}
	if small.gen == first {
		t.Errorf("the machine was never renewed: %d bytes after %d tokens", small.gen.machine.Bytes(), len(a.states))
	}
	if n := small.gen.machine.Bytes(); n > 2*24<<10 {
		t.Errorf("its tables take %d bytes", n)
	}
}

func TestManyMatchersAtOnce(t *testing.T) {
	v := mustVocabulary(t, byteTokens(`{"`, `":`, `"}`, "ab"))
	c := jsonConstraint(t, v, cfg.Limits{Memory: 64 << 10})
	var all sync.WaitGroup
	for seed := range uint64(6) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 3))
			m := c.Matcher()
			mask := make([]uint64, v.Words())
			for range 300 {
				m.Mask(mask)
				ids := idsOf(mask)
				if id := ids[rng.IntN(len(ids))]; !v.isEnd(id) {
					if err := m.Accept(id); err != nil {
						t.Error(err)
						return
					}
				} else {
					m = c.Matcher()
				}
			}
		})
	}
	all.Wait()
}

func TestDepth(t *testing.T) {
	v := mustVocabulary(t, byteTokens())
	m := jsonConstraint(t, v, cfg.Limits{Depth: 100}).Matcher()
	var err error
	n := 0
	for ; err == nil && n < 300; n++ {
		err = m.AcceptBytes([]byte("["))
	}
	var limit *cfg.LimitError
	if !errors.As(err, &limit) || limit.Limit != "depth" || n < 40 {
		t.Fatalf("after %d brackets: %v", n, err)
	}
	mask := make([]uint64, v.Words())
	if m.Mask(mask); len(idsOf(mask)) == 0 {
		t.Error("nothing may come after the error")
	}
	m.Rollback(5)
	if err := m.AcceptBytes([]byte("1]")); err != nil {
		t.Error(err)
	}
}

// TestHostile wants a clear answer soon: a grammar that works, or an error that names the limit.
func TestHostile(t *testing.T) {
	double := "root ::= x0\n"
	for i := range 40 {
		double += fmt.Sprintf("x%d ::= x%d x%d\n", i, i+1, i+1)
	}
	double += "x40 ::= \"a\"\n"
	alternatives := "root ::= " + strings.Repeat("(", 100) + `"a"` + strings.Repeat(` | "b" "c")`, 100) + "{1000}\n"
	nested := `"a"`
	for range 30 {
		nested = "(" + nested + "){0,1000}"
	}
	options := "root ::= " + strings.Repeat(`"a"? `, 3000)
	ambiguous := "root ::= s\ns ::= s s | s s s | \"a\" | \"\""
	cases := map[string]string{
		"doubling":     double,
		"alternatives": alternatives,
		"nested":       "root ::= " + nested,
		"options":      options,
		"ambiguous":    ambiguous,
		"counts":       `root ::= ("a" | "aa" | "aaa"){1,1000000}`,
		"many rules":   "root ::= \"a\"\n" + strings.Repeat("q ::= \"b\"\n", 3),
		"deep left":    "root ::= root1\nroot1 ::= root2 \"a\" | \"a\"\nroot2 ::= root1 \"b\" | root \"c\"",
		"wide class":   "root ::= [\\u0080-\\U0010ffff]{0,1000000}",
		"many ways":    "root ::= w (s w)*\nw ::= ([a-z] | [a-c]){1,9}\ns ::= ([a-z] | \" \"){1,9}",
		"ways to stop": "root ::= (w s)*\nw ::= \"a\" w | \"a\"\ns ::= \"a\" s | \"a\"",
	}
	v := mustVocabulary(t, byteTokens("aa", "aaaa", "aaaaaaaaaaaaaaaa", "ab", strings.Repeat("a", 48)))
	for name, text := range cases {
		begin := time.Now()
		c, err := Compile(Source{Kind: GBNF, Text: text}, v, cfg.Limits{Nodes: 1 << 14, Memory: 2 << 20, Width: 1 << 10})
		if err == nil {
			m := c.Matcher()
			mask := make([]uint64, v.Words())
			for range 60 {
				if m.Mask(mask); m.Err() != nil {
					err = m.Err()
					break
				}
				if err = m.AcceptBytes([]byte("a")); err != nil {
					break
				}
			}
			if n := c.Bytes(); n > 12<<20 {
				t.Errorf("%s: %d bytes", name, n)
			}
		}
		var limit *cfg.LimitError
		if err != nil && !errors.As(err, &limit) && !strings.Contains(err.Error(), "may not come here") && !strings.Contains(err.Error(), "twice") {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v, %v", name, time.Since(begin).Round(time.Millisecond), err)
	}
}
