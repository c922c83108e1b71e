package openai

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/sample"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/wire"
)

// sampling are the fields that chat completions and completions have in common: OpenAI's, and vLLM's
// additions.
type sampling struct {
	Model            string             `json:"model"`
	Stream           bool               `json:"stream"`
	StreamOptions    streamOptions      `json:"stream_options"`
	N                *int               `json:"n"`
	BestOf           *int               `json:"best_of"`
	MaxTokens        *int               `json:"max_tokens"`
	Temperature      *float32           `json:"temperature"`
	TopP             *float32           `json:"top_p"`
	TopK             *int               `json:"top_k"`
	MinP             *float32           `json:"min_p"`
	TypicalP         *float32           `json:"typical_p"`
	RepeatPenalty    *float32           `json:"repetition_penalty"`
	PresencePenalty  *float32           `json:"presence_penalty"`
	FrequencyPenalty *float32           `json:"frequency_penalty"`
	XTCProbability   *float32           `json:"xtc_probability"`
	XTCThreshold     *float32           `json:"xtc_threshold"`
	DRYMultiplier    *float32           `json:"dry_multiplier"`
	DRYBase          *float32           `json:"dry_base"`
	DRYAllowed       *int               `json:"dry_allowed_length"`
	MirostatTau      *float32           `json:"mirostat_tau"`
	MirostatEta      *float32           `json:"mirostat_eta"`
	Seed             *int64             `json:"seed"`
	Stop             wire.Strings       `json:"stop"`
	StopIDs          []int32            `json:"stop_token_ids"`
	MinTokens        *int               `json:"min_tokens"`
	IgnoreEnd        bool               `json:"ignore_eos"`
	LogitBias        map[string]float32 `json:"logit_bias"`
	BadWords         []string           `json:"bad_words"`
	Allowed          []int32            `json:"allowed_token_ids"`
	PromptLogProbs   *int               `json:"prompt_logprobs"`
	Priority         int                `json:"priority"`
	beaming
	constrained
	refused
}

type streamOptions struct {
	Usage bool `json:"include_usage"`
}

// refused are fields that would change an answer, and that this server does not know.
type refused struct {
	IncludeStop  bool       `json:"include_stop_str_in_output"`
	SkipSpecial  *bool      `json:"skip_special_tokens"`
	Truncate     *int       `json:"truncate_prompt_tokens"`
	PromptEmbeds wire.Value `json:"prompt_embeds"`
	Template     *string    `json:"chat_template"`
	LoRA         wire.Value `json:"lora_request"`
}

func (r refused) check() error {
	for _, f := range []struct {
		given bool
		name  string
	}{
		{r.IncludeStop, "include_stop_str_in_output"}, {r.SkipSpecial != nil && !*r.SkipSpecial, "skip_special_tokens"},
		{r.Truncate != nil, "truncate_prompt_tokens"}, {r.PromptEmbeds.Kind() != wire.Null, "prompt_embeds"},
		{r.Template != nil, "chat_template"}, {r.LoRA.Kind() != wire.Null, "lora_request"},
	} {
		if f.given {
			return server.Invalid(f.name, f.name+" is not supported; leave it out")
		}
	}
	return nil
}

// mostAnswers is how many one request may ask for.
const mostAnswers = 128

// answers is how many a request wants, and how many are made to choose from.
func (s *sampling) answers() (n, of int, err error) {
	n, of = 1, 1
	if s.N != nil {
		n = *s.N
	}
	if of = n; s.BestOf != nil {
		of = *s.BestOf
	}
	switch {
	case n < 1 || n > mostAnswers:
		err = wire.Errorf("n", "is %d; it must be between 1 and %d", n, mostAnswers)
	case of < n || of > mostAnswers:
		err = wire.Errorf("best_of", "is %d; it must be between n and %d", of, mostAnswers)
	case of > n && s.Stream:
		err = wire.Errorf("best_of", "does not go with stream")
	}
	return n, of, err
}

// check refuses values that no model takes.
func (s *sampling) check() error {
	if s.Model == "" {
		return server.Invalid("model", "model is missing: name one of those that /v1/models lists")
	}
	if s.MaxTokens != nil && *s.MaxTokens < 0 {
		return wire.Errorf("max_tokens", "is %d; it must be positive", *s.MaxTokens)
	}
	if s.MinTokens != nil && *s.MinTokens < 0 {
		return wire.Errorf("min_tokens", "is %d; it must be 0 or positive", *s.MinTokens)
	}
	if p := s.PromptLogProbs; p != nil && (*p < 0 || *p > spillway.MaxTopLogProbs) {
		return wire.Errorf("prompt_logprobs", "is %d; it must be between 0 and %d", *p, spillway.MaxTopLogProbs)
	}
	if err := server.CheckStops("stop", s.Stop); err != nil {
		return err
	}
	if err := s.checkBeams(); err != nil {
		return err
	}
	return s.refused.check()
}

// request puts the fields over the model's defaults.
func (s *sampling) request(h *pool.Held) (spillway.Request, error) {
	r := spillway.Request{Stop: s.Stop, StopIDs: s.StopIDs, IgnoreEnd: s.IgnoreEnd, Priority: s.Priority, Clip: true, Open: true}
	if s.MaxTokens != nil {
		r.MaxTokens = *s.MaxTokens
	}
	if s.MinTokens != nil {
		r.MinTokens = *s.MinTokens
	}
	p := h.Defaults().Sampling
	s.put(&p)
	var err error
	if p.LogitBias, err = s.bias(); err != nil {
		return r, err
	}
	if p.BadWords, err = s.badWords(h); err != nil {
		return r, err
	}
	if p.Allowed = s.Allowed; p.Allowed != nil && len(p.Allowed) == 0 {
		return r, wire.Errorf("allowed_token_ids", "is empty; leave it out, or name one token at least")
	}
	if err := s.valid(p, h); err != nil {
		return r, err
	}
	r.Sampling = &p
	return r, nil
}

// put sets the numbers that the request gives.
func (s *sampling) put(p *spillway.Sampling) {
	for _, f := range []struct{ to, from *float32 }{
		{&p.Temperature, s.Temperature}, {&p.TopP, s.TopP}, {&p.MinP, s.MinP}, {&p.Typical, s.TypicalP},
		{&p.RepeatPenalty, s.RepeatPenalty}, {&p.PresencePenalty, s.PresencePenalty}, {&p.FrequencyPenalty, s.FrequencyPenalty},
		{&p.XTCProbability, s.XTCProbability}, {&p.XTCThreshold, s.XTCThreshold}, {&p.DRYMultiplier, s.DRYMultiplier}, {&p.DRYBase, s.DRYBase},
		{&p.MirostatTau, s.MirostatTau}, {&p.MirostatEta, s.MirostatEta},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if s.TopK != nil {
		p.TopK = max(*s.TopK, 0) // -1 is off
	}
	if s.DRYAllowed != nil {
		p.DRYAllowedLength = *s.DRYAllowed
	}
	p.Seed = rand.Uint64()
	if s.Seed != nil {
		p.Seed = uint64(*s.Seed)
	}
}

func (s *sampling) bias() (map[int32]float32, error) {
	if len(s.LogitBias) == 0 {
		return nil, nil
	}
	out := make(map[int32]float32, len(s.LogitBias))
	for key, v := range s.LogitBias {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return nil, wire.Errorf("logit_bias", "has the key %.40q, which is no token id", key)
		}
		if v < -100 || v > 100 {
			return nil, wire.Errorf("logit_bias."+key, "is %v; it must be between -100 and 100", v)
		}
		out[int32(id)] = v
	}
	return out, nil
}

// badWords are the tokens of words that must not come, at the beginning of a text and after a space.
func (s *sampling) badWords(h *pool.Held) ([][]int32, error) {
	if len(s.BadWords) == 0 {
		return nil, nil
	}
	tok, err := h.Tokenizer()
	if err != nil {
		return nil, err
	}
	var out [][]int32
	for i, word := range s.BadWords {
		for _, text := range []string{word, " " + strings.TrimLeft(word, " ")} {
			ids, err := tok.Encode(nil, text, plainText)
			if err != nil {
				return nil, wire.Errorf(fmt.Sprintf("bad_words[%d]", i), "cannot be encoded: %v", err)
			}
			if len(ids) > 0 {
				out = append(out, ids)
			}
		}
	}
	return out, nil
}

// fieldNames are the API's names of sample's parameters, where they are other ones.
var fieldNames = map[string]string{
	"typical": "typical_p", "repeat-penalty": "repetition_penalty", "bad-word": "bad_words", "allowed-tokens": "allowed_token_ids",
}

// valid checks the parameters, and that tokens are of the model's vocabulary.
func (s *sampling) valid(p spillway.Sampling, h *pool.Held) error {
	vocab := h.Layout().Vocab
	p.StopIDs = s.StopIDs
	err := cmp.Or(p.Validate(), p.CheckVocab(vocab))
	var wrong *sample.ParamError
	if errors.As(err, &wrong) {
		name, ok := fieldNames[wrong.Name]
		if !ok {
			name = strings.ReplaceAll(wrong.Name, "-", "_")
		}
		return wire.Errorf(name, "is %v; it must be %s", wrong.Value, wrong.Want)
	}
	return err
}
