package regular

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
)

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}

// inRange is the plain meaning of a range.
func inRange(r Range, x *big.Rat) bool {
	if r.Min != nil && (x.Cmp(r.Min) < 0 || r.ExclusiveMin && x.Cmp(r.Min) == 0) {
		return false
	}
	return r.Max == nil || x.Cmp(r.Max) < 0 || !r.ExclusiveMax && x.Cmp(r.Max) == 0
}

func randomDecimal(r *rand.Rand) string {
	s := fmt.Sprint(r.IntN([]int{2, 12, 120, 1200}[r.IntN(4)]))
	if r.IntN(2) == 0 {
		s += "." + fmt.Sprintf("%0*d", 1+r.IntN(3), r.IntN(10))
	}
	if r.IntN(2) == 0 && rat(s).Sign() != 0 {
		s = "-" + s
	}
	return s
}

func TestDecimal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 400 {
		var bounds Range
		if r.IntN(4) > 0 {
			bounds.Min, bounds.ExclusiveMin = rat(randomDecimal(r)), r.IntN(2) == 0
		}
		if r.IntN(4) > 0 {
			bounds.Max, bounds.ExclusiveMax = rat(randomDecimal(r)), r.IntN(2) == 0
		}
		fraction := r.IntN(4) - 1
		d, err := NewBuilder(Limits{}).Decimal(bounds, fraction)
		if err != nil {
			t.Fatal(err)
		}
		shape := build(t, `-?(0|[1-9]\d*)(\.\d+)?`, false)
		for range 50 {
			s := randomDecimal(r)
			if r.IntN(3) == 0 && bounds.Min != nil {
				s = bounds.Min.FloatString(2)
			}
			want := shape.Match(s) && inRange(bounds, rat(s)) && (fraction < 0 || decimals(s) <= fraction) && !(s[0] == '-' && rat(s).Sign() == 0)
			if got := d.Match(s); got != want {
				t.Fatalf("%+v with %d decimals: %s: %v, want %v", bounds, fraction, s, got, want)
			}
			if !d.Empty() {
				s = walk(d, r)
				if !shape.Match(s) || !inRange(bounds, rat(s)) || fraction >= 0 && decimals(s) > fraction {
					t.Fatalf("%+v with %d decimals: %s", bounds, fraction, s)
				}
			}
		}
	}
}

func decimals(s string) int {
	for i := range len(s) {
		if s[i] == '.' {
			return len(s) - i - 1
		}
	}
	return 0
}

func TestMultipleOf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for _, of := range []string{"1", "2", "3", "7", "10", "0.1", "0.01", "0.25", "1.5", "2.5", "100", "0.007", "1e3", "12.5"} {
		b := NewBuilder(Limits{})
		d, err := b.MultipleOf(rat(of))
		if err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			s := randomDecimal(r)
			want := new(big.Rat).Quo(rat(s), rat(of)).IsInt()
			if got := d.Match(s); got != want {
				t.Fatalf("%s of %s: %v, want %v", s, of, got, want)
			}
		}
	}
	if _, err := NewBuilder(Limits{}).MultipleOf(rat("1e100")); err == nil {
		t.Error("1e100 needs too many states")
	}
}
