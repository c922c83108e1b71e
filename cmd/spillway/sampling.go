package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/sample"
)

// samplingFlags say how a prompt is made and how tokens are chosen, where the user wants it otherwise than
// the model's maker.
type samplingFlags struct {
	templateFlags
	dialectFlags
	MaxTokens   int      `help:"Most tokens of an answer. Default: the model's suggestion, else 512." placeholder:"N"`
	Temperature *float32 `help:"0 takes the likeliest token. Default for all of these: the model's suggestion, else greedy." placeholder:"T"`
	TopK        *int     `help:"Choose among the K likeliest tokens; 0 is all." placeholder:"K"`
	TopP        *float32 `help:"Choose among the likeliest tokens that make up this share." placeholder:"P"`
	MinP        *float32 `help:"Leave out tokens below this fraction of the likeliest one's probability." placeholder:"P"`
	Seed        uint64   `help:"The same seed gives the same answer." default:"0"`
	Stop        []string `help:"Text that ends the answer; may be given several times." sep:"none" placeholder:"TEXT"`
	choiceFlags
}

// choiceFlags are the rarer ways to choose tokens; see docs/sampling.md.
type choiceFlags struct {
	Typical            *float32          `help:"Choose among the tokens of the most expected surprise that make up this share." placeholder:"P"`
	XtcProbability     float32           `help:"How often the likeliest tokens are left out, but for the last of them." placeholder:"P"`
	XtcThreshold       float32           `help:"The probability that makes a token one of the likeliest. Default: 0.1." placeholder:"P"`
	RepeatPenalty      *float32          `help:"Divides the logits of tokens that are in prompt or answer; 1 is off." placeholder:"R"`
	RepeatLastN        int               `help:"How many of the last tokens the three penalties see. Default: all." placeholder:"N"`
	PresencePenalty    float32           `help:"Taken from the logits of tokens that are in the answer." placeholder:"V"`
	FrequencyPenalty   float32           `help:"The same, for each time that a token is in the answer." placeholder:"V"`
	DryMultiplier      float32           `help:"DRY: penalty of a token that goes on with a repetition; 0 is off." placeholder:"V"`
	DryBase            float32           `help:"DRY: each further token of a repetition multiplies the penalty by this. Default: 1.75." placeholder:"V"`
	DryAllowedLength   int               `help:"DRY: shorter repetitions are free. Default: 2." placeholder:"N"`
	DryPenaltyLastN    int               `help:"DRY: how many of the last tokens it sees. Default: all." placeholder:"N"`
	DrySequenceBreaker []string          `help:"DRY: text that ends a repetition; may be given several times. Default: newline, colon, quotation mark, asterisk." sep:"none" placeholder:"TEXT"`
	MirostatTau        float32           `help:"Mirostat 2: the surprise in bits to aim at, in place of top-k, top-p, min-p, typical and XTC; 0 is off." placeholder:"V"`
	MirostatEta        float32           `help:"Mirostat 2: how fast it learns. Default: 0.1." placeholder:"V"`
	LogitBias          map[int32]float32 `help:"Added to a token's logit; -inf forbids it; may be given several times." placeholder:"ID=V"`
	BadWord            []string          `help:"Text that the answer must not contain, as the tokens that it is written in; may be given several times." sep:"none" placeholder:"TEXT"`
	IgnoreEos          bool              `help:"Never choose a token that ends the answer."`
	MinTokens          int               `help:"Choose none before so many tokens." placeholder:"N"`
}

// apply changes p, which belongs to a model.
func (f *choiceFlags) apply(p *sample.Params, o *opened) error {
	override(&p.Typical, f.Typical)
	override(&p.RepeatPenalty, f.RepeatPenalty)
	p.XTCProbability, p.XTCThreshold = f.XtcProbability, f.XtcThreshold
	p.RepeatLastN, p.PresencePenalty, p.FrequencyPenalty = f.RepeatLastN, f.PresencePenalty, f.FrequencyPenalty
	p.DRYMultiplier, p.DRYBase = f.DryMultiplier, f.DryBase
	p.DRYAllowedLength, p.DRYLastN = f.DryAllowedLength, f.DryPenaltyLastN
	p.MirostatTau, p.MirostatEta = f.MirostatTau, f.MirostatEta
	p.LogitBias, p.IgnoreEOS, p.MinTokens = f.LogitBias, f.IgnoreEos, f.MinTokens
	if f.IgnoreEos || f.MinTokens > 0 {
		p.EOS = slices.Sorted(maps.Keys(o.Defaults().End))
	}
	if len(f.BadWord) == 0 && f.DryMultiplier == 0 {
		return nil
	}
	tok, err := o.Tokenizer()
	if err != nil {
		return err
	}
	if p.BadWords, err = sample.BadWords(tok, f.BadWord); err != nil {
		return usageError{err}
	}
	if f.DryMultiplier == 0 {
		return nil
	}
	breakers := f.DrySequenceBreaker
	if len(breakers) == 0 {
		breakers = sample.DefaultBreakers
	}
	if p.DRYBreakers, err = sample.Breakers(tok, breakers); err != nil {
		return usageError{err}
	}
	return nil
}

// dialectFlags say how an answer is read.
type dialectFlags struct {
	Dialect   string `help:"Dialect of tool calls (hermes, llama3_json …), or none. Default: the model's, by its template and name." placeholder:"NAME"`
	Reasoning string `help:"Dialect of reasoning (qwen3, deepseek_r1 …), or none. Default: the model's." placeholder:"NAME"`
}

// request returns a request with these choices over the model's defaults.
func (f *samplingFlags) request(o *opened) (spillway.Request, error) {
	p := o.Defaults().Sampling
	override(&p.Temperature, f.Temperature)
	override(&p.TopK, f.TopK)
	override(&p.TopP, f.TopP)
	override(&p.MinP, f.MinP)
	p.Seed = f.Seed
	if err := f.choiceFlags.apply(&p, o); err != nil {
		return spillway.Request{}, err
	}
	if err := cmp.Or(p.Validate(), p.CheckVocab(o.Layout().Vocab)); err != nil {
		return spillway.Request{}, usageError{err}
	}
	if f.MaxTokens > mostTokens {
		return spillway.Request{}, usagef("--max-tokens is %d; at most %d make sense", f.MaxTokens, mostTokens)
	}
	read := spillway.Dialects{Tool: f.Dialect, Reasoning: f.Reasoning}
	if err := read.Check(); err != nil {
		return spillway.Request{}, usageError{err}
	}
	return spillway.Request{
		MaxTokens: f.MaxTokens, Sampling: &p, Stop: f.Stop, ParseSpecial: f.ParseSpecial, Dialects: read,
	}, nil
}

func override[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
