package main

import "github.com/spillway/spillway"

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
}

// dialectFlags say how an answer is read.
type dialectFlags struct {
	Dialect   string `help:"Dialect of tool calls (hermes, llama3_json …), or none. Default: the model's, by its template and name." placeholder:"NAME"`
	Reasoning string `help:"Dialect of reasoning (qwen3, deepseek_r1 …), or none. Default: the model's." placeholder:"NAME"`
}

// request returns a request with these choices over the model's defaults.
func (f *samplingFlags) request(d spillway.Defaults) (spillway.Request, error) {
	p := d.Sampling
	override(&p.Temperature, f.Temperature)
	override(&p.TopK, f.TopK)
	override(&p.TopP, f.TopP)
	override(&p.MinP, f.MinP)
	p.Seed = f.Seed
	if err := p.Validate(); err != nil {
		return spillway.Request{}, usageError{err}
	}
	if f.MaxTokens < 0 {
		return spillway.Request{}, usagef("--max-tokens is %d; give a positive number", f.MaxTokens)
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
