package sample

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestLogProbs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := anyInput(t).logits
		chosen := rapid.IntRange(0, len(logits)-1).Draw(t, "chosen")
		top := rapid.IntRange(0, 30).Draw(t, "top")
		peak, sum := float64(slices.Max(logits)), 0.0
		for _, v := range logits {
			sum += math.Exp(float64(v) - peak)
		}
		exact := func(i int) float64 { return float64(logits[i]) - peak - math.Log(sum) }
		near := func(got float32, i int) bool {
			return math.Abs(float64(got)-exact(i)) <= 2e-8+2e-12*float64(len(logits))+math.Abs(exact(i))/(1<<24)
		}
		ids := make([]int, len(logits))
		for i := range ids {
			ids[i] = i
		}
		slices.SortStableFunc(ids, func(a, b int) int {
			return int(math.Copysign(1, float64(logits[b]-logits[a]))) * btoi(logits[a] != logits[b])
		})
		got, list := LogProbs(logits, int32(chosen), top)
		if !near(got, chosen) || len(list) != min(top, len(logits)) {
			t.Fatalf("%v and %d alternatives, want %v", got, len(list), exact(chosen))
		}
		for n, a := range list {
			if int(a.ID) != ids[n] || !near(a.LogProb, ids[n]) {
				t.Fatalf("alternative %d is %v, want %d with %v", n, a, ids[n], exact(ids[n]))
			}
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestLogProbsEdges(t *testing.T) {
	got, list := LogProbs([]float32{never, 2, never, 2}, 0, 4)
	if !math.IsInf(float64(got), -1) || len(list) != 2 || list[0] != (TokenLogProb{1, -0.6931472}) || list[1].ID != 3 {
		t.Errorf("%v %v", got, list)
	}
	for _, bad := range [][]float32{{}, {never}, {1, float32(math.NaN())}, {1, float32(math.Inf(1))}} {
		if got, list := LogProbs(bad, 0, 2); got == got || list != nil {
			t.Errorf("%v: %v %v, want NaN", bad, got, list)
		}
	}
	if got, list := LogProbs([]float32{1, 2}, -1, 1); got == got || len(list) != 1 {
		t.Errorf("without a chosen token: %v %v", got, list)
	}
}
