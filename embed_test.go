package spillway

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/kernel"
)

// The vector of a language model is the last token's state after the last norm, scaled to length 1, whoever shares the
// step and whatever the cache holds.
func TestEmbedOfALanguageModel(t *testing.T) {
	o := ModelOptions{Context: 128, Sequences: 8, Chunk: 24, Shared: true}
	rt, m := openNear(t, toyFile(t), 1<<30, 2, o)
	hidden := m.Layout().Hidden
	want := func(ids []int32) []float32 {
		var last []float32
		if _, err := m.Probe(context.Background(), Probe{IDs: ids, Tap: func(name string, rows, width int, values []float32) {
			if name == "final_norm" {
				last = slices.Clone(values[(rows-1)*width:])
			}
		}}); err != nil {
			t.Fatal(err)
		}
		kernel.Normalize(last)
		return last
	}
	for round := range 2 {
		var wg sync.WaitGroup
		for i := range 12 {
			ids := client(i, m.Layout().Vocab).IDs
			w := want(ids)
			wg.Go(func() {
				v, u, err := m.Embed(context.Background(), EmbedRequest{IDs: ids})
				if err != nil || u.PromptTokens != len(ids) || !slices.Equal(v, w) {
					t.Errorf("request %d: %v, %+v, or another vector", i, err, u)
				}
				if round == 1 && len(ids) > 16 && u.CachedTokens == 0 {
					t.Errorf("request %d: nothing was in the cache", i)
				}
			})
			wg.Go(func() {
				if _, err := m.Generate(context.Background(), client(i, m.Layout().Vocab), nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	ids := client(1, m.Layout().Vocab).IDs
	full := want(ids)
	v, _, err := m.Embed(context.Background(), EmbedRequest{IDs: ids, Dimensions: 16})
	if err != nil || len(v) != 16 {
		t.Fatalf("%d dimensions, %v", len(v), err)
	}
	sum := 0.0
	for i, x := range v {
		sum += float64(x) * float64(x)
		if i > 0 && math.Abs(float64(x)*float64(full[0])-float64(full[i])*float64(v[0])) > 1e-6 {
			t.Errorf("value %d is %v, not in the direction of %v", i, x, full[i])
		}
	}
	if math.Abs(sum-1) > 1e-6 {
		t.Errorf("the cut vector has length² %v", sum)
	}
	for _, bad := range []struct {
		r    EmbedRequest
		says string
	}{
		{EmbedRequest{IDs: []int32{}}, "no tokens"},
		{EmbedRequest{IDs: ids, Dimensions: hidden + 1}, "dimensions are not possible"},
		{EmbedRequest{IDs: ids, Dimensions: -1}, "dimensions are not possible"},
		{EmbedRequest{IDs: make([]int32, 129)}, "do not fit in a context of 128"},
	} {
		if _, _, err := m.Embed(context.Background(), bad.r); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%v does not say %q", err, bad.says)
		}
	}
	var late *DeadlineError
	if _, _, err := m.Embed(context.Background(), EmbedRequest{IDs: ids, Deadline: time.Now().Add(-time.Second)}); !errors.As(err, &late) {
		t.Errorf("a deadline that has passed: %v", err)
	}
	if err := errors.Join(m.Close(), rt.Close()); err != nil {
		t.Error(err)
	}
	if _, _, err := m.Embed(context.Background(), EmbedRequest{IDs: ids}); !errors.Is(err, ErrClosed) {
		t.Errorf("after the close: %v", err)
	}
}
