package synth

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/trace/skew"
)

// Scores and normal noise bring as many experts above 0 as are used, the busier ones more often.
func TestScores(t *testing.T) {
	for _, s := range []skew.Skew{{Experts: 64, Used: 8}, {Experts: 64, Used: 8, Zipf: 1}, {Experts: 32, Used: 4, Zipf: 6, Head: 1}, {Experts: 8, Used: 8}} {
		b := scores(s.Shares(), s.Used)
		sum := 0.0
		for i := range b {
			sum += tail(-b[i])
			if i > 0 && b[i] > b[i-1] {
				t.Errorf("%+v: rank %d has %v, the one before %v", s, i, b[i], b[i-1])
			}
		}
		if math.Abs(sum-float64(s.Used)) > 0.02 {
			t.Errorf("%+v: %v experts at a time", s, sum)
		}
	}
}

// Noise that two tokens share in part keeps between what chance keeps and everything.
func TestKept(t *testing.T) {
	b := scores(skew.Skew{Experts: 64, Used: 8}.Shares(), 8)
	if got := kept(b, 0); math.Abs(got-0.125) > 0.002 {
		t.Errorf("%v are kept by chance", got)
	}
	before := kept(b, 0)
	for _, c := range []float64{0.25, 0.5, 0.75, 0.99} {
		now := kept(b, c)
		if now <= before {
			t.Errorf("%v are kept at %v, %v at less", now, c, before)
		}
		before = now
	}
	if before < 0.85 {
		t.Errorf("%v are kept where nearly all is shared", before)
	}
}

func TestSkewRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"toy has no experts":       {Shape: "toy", Zipf: 1},
		"an exponent of -1":        {Shape: "toy-moe", Zipf: -1},
		"with a head of 21":        {Shape: "toy-moe", ZipfHead: 21},
		"a locality of 0.99; with": {Shape: "toy-moe", Locality: 0.99},
		"a locality of -0.1":       {Shape: "toy-moe", Locality: -0.1},
		"a locality of NaN":        {Shape: "toy-moe", Locality: math.NaN()},
	} {
		o.Type, o.Path = "q8_0", filepath.Join(t.TempDir(), "m.gguf")
		if _, err := Write(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
