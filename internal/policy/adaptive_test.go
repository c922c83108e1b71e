package policy

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// keeping visits one layer: of the two best experts of a token the next one keeps both, and draws two others, some more often than others.
func keeping(r *adaptive, visits int) (last []int) {
	random := rand.New(rand.NewPCG(1, 2))
	last = []int{0, 1, 2, 3}
	for range visits {
		next := []int{last[0], last[1]}
		if random.IntN(8) == 0 { // else they would stay for ever
			next = nil
		}
		for len(next) < 4 {
			e := min(random.IntN(16), random.IntN(16))
			if !slices.Contains(next, e) {
				next = append(next, e)
			}
		}
		r.Observe(0, visitOf(next, false))
		last = next
	}
	return last
}

// Which half of a token's experts the next one keeps is learnt, and that shares say less beside it.
func TestAdaptiveLearns(t *testing.T) {
	r := newAdaptive(Shape{1, 16})
	last := keeping(r, 400)
	l := &r.learnt[0]
	if l.bonus[0] < l.bonus[1]+one/2 || l.slope > one*3/4 {
		t.Errorf("the better half adds %.2f, the worse one %.2f; shares count %.2f", part(l.bonus[0]), part(l.bonus[1]), part(l.slope))
	}
	for _, e := range last[:2] {
		for other := range 16 {
			if !slices.Contains(last[:2], other) && r.Worth(0, other) >= r.Worth(0, e) {
				t.Errorf("expert %d is worth %.2f, expert %d, which tokens keep, %.2f", other, part(r.Worth(0, other)), e, part(r.Worth(0, e)))
			}
		}
	}
}

func part(x int64) float64 { return float64(x) / one }

// Where tokens are drawn alike, ages add next to nothing and shares count in full.
func TestAdaptiveWithoutMemory(t *testing.T) {
	r := newAdaptive(Shape{1, 16})
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		var next []int
		for len(next) < 4 {
			if e := min(random.IntN(16), random.IntN(16)); !slices.Contains(next, e) {
				next = append(next, e)
			}
		}
		r.Observe(0, visitOf(next, false))
	}
	l := &r.learnt[0]
	if max(l.bonus[0], -l.bonus[0], l.bonus[1], -l.bonus[1]) > one/10 || l.slope < one*3/4 {
		t.Errorf("ages add %.2f and %.2f; shares count %.2f", part(l.bonus[0]), part(l.bonus[1]), part(l.slope))
	}
}

// Figures at the ends of what they can be neither overflow nor divide by nothing.
func TestAdaptiveExtremes(t *testing.T) {
	const experts = 1 << 16 / 16
	r := newAdaptive(Shape{1, experts})
	all := make([]int, experts)
	for i := range all {
		all[i] = i
	}
	for i := range 600 {
		switch {
		case i%100 == 99:
			r.Observe(0, visitOf(all[:1], false))
		default:
			r.Observe(0, visitOf(all, i%7 == 0))
		}
		for e := 0; e < experts; e += 511 {
			if w := r.Worth(0, e); w < -2*one || w > 2*one {
				t.Fatalf("visit %d: expert %d is worth %d", i, e, w)
			}
		}
	}
}
