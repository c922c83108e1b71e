package sample

import (
	"fmt"
	"math"
)

// Params says how a token is chosen. The zero value is greedy; every part of it that is zero is off.
// docs/sampling.md gives the order of the steps and the definition that each of them follows.
type Params struct {
	Temperature float32 // 0 takes the likeliest token and ignores the rest
	TopK        int     // keep the k likeliest; 0 keeps all
	TopP        float32 // keep the fewest likeliest tokens with this share of the whole; 0 or 1 keeps all
	MinP        float32 // keep tokens with at least this fraction of the likeliest one's probability; 0 keeps all
	Seed        uint64

	Typical        float32 // keep the tokens nearest to the expected surprise that have this share of the whole; 0 or 1 keeps all
	XTCProbability float32 // how often the likeliest tokens are left out; 0 is never
	XTCThreshold   float32 // of those with at least this probability, all but the least likely are; 0 is 0.1

	RepeatPenalty    float32 // divides positive logits of tokens in prompt and answer, multiplies others; 0 or 1 is off
	RepeatLastN      int     // tokens at the end of prompt and answer that the three penalties see; 0 or -1 is all
	PresencePenalty  float32 // taken from logits of tokens in the answer
	FrequencyPenalty float32 // the same, for each time that the token is in the answer

	DRYMultiplier    float32   // penalty of a token that would go on with a repetition; 0 is off
	DRYBase          float32   // grows with this power of the repetition's length; 0 is 1.75
	DRYAllowedLength int       // repetitions below this length are free; 0 is 2
	DRYLastN         int       // tokens at the end of prompt and answer that DRY sees; 0 or -1 is all
	DRYBreakers      [][]int32 // sequences of tokens that no repetition reaches across

	MirostatTau float32 // the surprise in bits that mirostat 2 aims at; 0 is off
	MirostatEta float32 // how fast it learns; 0 is 0.1

	LogitBias map[int32]float32 // added to logits; -Inf forbids a token
	Allowed   []int32           // the only tokens that may be chosen; nil is all
	BadWords  [][]int32         // sequences of tokens that the answer must not contain

	EOS       []int32 // tokens that end an answer, for IgnoreEOS and MinTokens
	StopIDs   []int32 // the request's own, for MinTokens
	IgnoreEOS bool    // never choose one of EOS
	MinTokens int     // choose none of EOS and StopIDs before so many tokens
}

// What zero means where it cannot mean off.
const (
	defaultXTCThreshold = 0.1
	defaultDRYBase      = 1.75
	defaultDRYAllowed   = 2
	defaultMirostatEta  = 0.1
)

// mostTokens bounds the lists of tokens of one request.
const mostTokens = 1 << 16

// A ParamError says which parameter is out of range. Name is that of the command line's flag.
type ParamError struct {
	Name  string
	Value any
	Want  string // what would work
}

func (e *ParamError) Error() string {
	return fmt.Sprintf("%s is %v; it must be %s", e.Name, e.Value, e.Want)
}

// number is the rule for one parameter; open bounds are not part of the range.
type number struct {
	name       string
	value      float32
	low, high  float32
	open, zero bool // low itself is excluded; 0 is allowed besides
	want       string
}

func (n number) check() error {
	v := n.value
	if n.zero && v == 0 || v > n.low && v <= n.high || v == n.low && !n.open {
		return nil
	}
	return &ParamError{n.name, v, n.want}
}

// Validate returns a *ParamError that names the first parameter out of range.
func (p Params) Validate() error {
	for _, n := range []number{
		{name: "temperature", value: p.Temperature, high: math.MaxFloat32, want: "0 (greedy) or a positive number"},
		{name: "top-p", value: p.TopP, high: 1, want: "between 0 and 1"},
		{name: "min-p", value: p.MinP, high: 1, want: "between 0 and 1"},
		{name: "typical", value: p.Typical, high: 1, want: "between 0 and 1"},
		{name: "xtc-probability", value: p.XTCProbability, high: 1, want: "between 0 (off) and 1"},
		{name: "xtc-threshold", value: p.XTCThreshold, high: 0.5, want: "between 0 (for 0.1) and 0.5"},
		{name: "repeat-penalty", value: p.RepeatPenalty, low: 0.01, high: 100, zero: true, want: "0 or 1 (off), or between 0.01 and 100"},
		{name: "presence-penalty", value: p.PresencePenalty, low: -2, high: 2, want: "between -2 and 2"},
		{name: "frequency-penalty", value: p.FrequencyPenalty, low: -2, high: 2, want: "between -2 and 2"},
		{name: "dry-multiplier", value: p.DRYMultiplier, high: 100, want: "between 0 (off) and 100"},
		{name: "dry-base", value: p.DRYBase, low: 1, high: 100, zero: true, want: "between 1 and 100, or 0 for 1.75"},
		{name: "mirostat-tau", value: p.MirostatTau, high: 100, want: "between 0 (off) and 100"},
		{name: "mirostat-eta", value: p.MirostatEta, high: 1, want: "between 0 (for 0.1) and 1"},
	} {
		if err := n.check(); err != nil {
			return err
		}
	}
	if err := p.validateCounts(); err != nil {
		return err
	}
	return p.validateTokens()
}

func (p Params) validateCounts() error {
	switch {
	case p.TopK < 0:
		return &ParamError{"top-k", p.TopK, "0 (off) or positive"}
	case p.RepeatLastN < -1:
		return &ParamError{"repeat-last-n", p.RepeatLastN, "positive, or 0 for all"}
	case p.DRYAllowedLength < 0:
		return &ParamError{"dry-allowed-length", p.DRYAllowedLength, "positive, or 0 for 2"}
	case p.DRYLastN < -1:
		return &ParamError{"dry-penalty-last-n", p.DRYLastN, "positive, or 0 for all"}
	case p.MinTokens < 0:
		return &ParamError{"min-tokens", p.MinTokens, "0 (off) or positive"}
	}
	return nil
}

func (p Params) validateTokens() error {
	if len(p.LogitBias) > mostTokens {
		return &ParamError{"logit-bias", fmt.Sprintf("a list of %d tokens", len(p.LogitBias)), fmt.Sprintf("for %d at most", mostTokens)}
	}
	for id, v := range p.LogitBias {
		if !(v >= -100 && v <= 100) && !math.IsInf(float64(v), -1) {
			return &ParamError{"logit-bias", fmt.Sprintf("%v for token %d", v, id), "between -100 and 100, or -Inf to forbid the token"}
		}
	}
	if p.Allowed != nil && len(p.Allowed) == 0 {
		return &ParamError{"allowed-tokens", "an empty list", "left out, or name one token at least"}
	}
	for _, l := range []struct {
		name string
		list [][]int32
	}{{"bad-word", p.BadWords}, {"dry-sequence-breaker", p.DRYBreakers}} {
		all := 0
		for _, w := range l.list {
			if all += len(w); len(w) == 0 {
				return &ParamError{l.name, "empty", "a text of one token at least"}
			}
		}
		if all > mostTokens {
			return &ParamError{l.name, fmt.Sprintf("a list of %d tokens", all), fmt.Sprintf("one of %d at most", mostTokens)}
		}
	}
	return nil
}

// CheckVocab returns a *ParamError that names a token that is not in a vocabulary of that size. Breakers
// and EOS may: they are not looked up.
func (p Params) CheckVocab(vocab int) error {
	check := func(name string, ids ...int32) error {
		for _, id := range ids {
			if id < 0 || int(id) >= vocab {
				return &ParamError{name, fmt.Sprintf("for token %d", id), fmt.Sprintf("for tokens from 0 to %d", vocab-1)}
			}
		}
		return nil
	}
	for id := range p.LogitBias {
		if err := check("logit-bias", id); err != nil {
			return err
		}
	}
	for _, w := range p.BadWords {
		if err := check("bad-word", w...); err != nil {
			return err
		}
	}
	if err := check("allowed-tokens", p.Allowed...); err != nil {
		return err
	}
	return check("stop-token-ids", p.StopIDs...)
}

// Greedy reports whether no random number is needed.
func (p Params) Greedy() bool { return p.Temperature == 0 || p.TopK == 1 && p.MirostatTau == 0 }

// NeedsHistory reports whether a choice depends on the tokens before it.
func (p Params) NeedsHistory() bool {
	return p.repeats() || p.DRYMultiplier != 0 || len(p.BadWords) > 0 || p.MinTokens > 0
}

// repeats reports whether one of the three penalties of single tokens is on.
func (p Params) repeats() bool {
	return p.repeatPenalty() != 1 || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}

func (p Params) repeatPenalty() float32 { return or(p.RepeatPenalty, 1) }

// or is v, or its default if v is 0.
func or[T int | float32](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// last is the last n of ids; all for n ≤ 0.
func last(ids []int32, n int) []int32 {
	if n <= 0 || n >= len(ids) {
		return ids
	}
	return ids[len(ids)-n:]
}
