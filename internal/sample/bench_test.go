package sample

import (
	"math"
	"slices"
	"testing"
)

func BenchmarkChoose(b *testing.B) {
	const vocab = 151936
	in := Input{Logits: randomLogits(vocab, 3, 9), Prompt: 1000, Scratch: newScratch(b, vocab, 4096), Mask: make([]uint64, vocab/64)}
	for i := range 4096 {
		in.History = append(in.History, int32(i*i%1999))
	}
	sparse, dense := slices.Clone(in.Mask), in.Mask
	for i := range dense {
		dense[i] = math.MaxUint64 - 1<<(i%64)
		sparse[i] = uint64(btoi(i%16 == 0))
	}
	for _, c := range []struct {
		name string
		p    Params
		mask []uint64
	}{
		{"greedy, sparse mask", Params{}, sparse},
		{"greedy, dense mask", Params{}, dense},
		{"greedy, penalties", Params{RepeatPenalty: 1.1, FrequencyPenalty: 0.1}, nil},
		{"greedy, dry", Params{DRYMultiplier: 0.8}, nil},
		{"min-p", Params{Temperature: 0.7, MinP: 0.05}, nil},
		{"top-k, mask", Params{Temperature: 0.7, TopK: 40}, dense},
		{"typical", Params{Temperature: 0.7, Typical: 0.9}, nil},
		{"mirostat", Params{Temperature: 0.7, MirostatTau: 5}, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, _ := New(c.p)
			in.Mask = c.mask
			for b.Loop() {
				if _, err := s.Choose(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("logprobs", func(b *testing.B) {
		for b.Loop() {
			LogProbs(in.Logits, 3, 20)
		}
	})
}
