package spillway

import (
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/sample"
	"github.com/spillway/spillway/internal/storyteller"
	"github.com/spillway/spillway/internal/tokenizer"
)

// Sampling says how tokens are chosen; the zero value is greedy.
type Sampling = sample.Params

// Defaults are what a model's maker suggests: generation_config.json, or GGUF's general.sampling.*
// keys.
type Defaults struct {
	Sampling  Sampling
	MaxTokens int            // 0 if the maker says nothing
	End       map[int32]bool // tokens that end an answer
}

// generationConfig is the part of generation_config.json that is used.
type generationConfig struct {
	DoSample     *bool    `json:"do_sample"`
	Temperature  *float32 `json:"temperature"`
	TopK         *int     `json:"top_k"`
	TopP         *float32 `json:"top_p"`
	MinP         *float32 `json:"min_p"`
	MaxNewTokens int      `json:"max_new_tokens"`
	EOS          ids      `json:"eos_token_id"`
}

// ids is one token id or a list of them.
type ids []int32

func (l *ids) UnmarshalJSON(b []byte) error {
	var one int32
	if json.Unmarshal(b, &one) == nil {
		*l = ids{one}
		return nil
	}
	return json.Unmarshal(b, (*[]int32)(l))
}

func readDefaults(cat *checkpoint.Catalog) (Defaults, error) {
	d := Defaults{End: map[int32]bool{}}
	if cat.Format == checkpoint.GGUF {
		d.fromMeta(cat.Meta)
		return d, nil
	}
	raw, err := cat.ReadJSON("generation_config.json")
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	var g generationConfig
	if err := json.Unmarshal(raw, &g); err != nil {
		return d, &checkpoint.FormatError{Path: cat.Path, Where: "generation_config.json", What: err.Error()}
	}
	d.from(g)
	return d, nil
}

func (d *Defaults) from(g generationConfig) {
	d.MaxTokens = max(g.MaxNewTokens, 0)
	for _, id := range g.EOS {
		d.End[id] = true
	}
	if g.DoSample == nil || !*g.DoSample {
		return
	}
	// transformers takes these where generation_config.json leaves them out.
	d.Sampling = Sampling{Temperature: 1, TopK: 50}
	set(&d.Sampling.Temperature, g.Temperature)
	set(&d.Sampling.TopK, g.TopK)
	set(&d.Sampling.TopP, g.TopP)
	set(&d.Sampling.MinP, g.MinP)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func (d *Defaults) fromMeta(m checkpoint.Meta) {
	number := func(key string) float32 {
		v, _ := m.Float("general.sampling." + key)
		return float32(v)
	}
	d.Sampling = Sampling{Temperature: number("temp"), TopP: number("top_p"), MinP: number("min_p"), TopK: int(number("top_k"))}
}

// storyteller is what the embedded model's makers suggest.
func (d *Defaults) storyteller() {
	d.Sampling = Sampling{Temperature: storyteller.Temperature, TopP: storyteller.TopP}
	d.MaxTokens = storyteller.MaxTokens
	for _, id := range storyteller.Ends {
		d.End[id] = true
	}
}

// end adds the tokenizer's own ends.
func (d *Defaults) end(t *tokenizer.Tokenizer) {
	for _, id := range t.EOS() {
		d.End[id] = true
	}
}

// Defaults are what the model's maker suggests for generation.
func (c *Checkpoint) Defaults() Defaults { return c.defaults }
