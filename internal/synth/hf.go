package synth

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// config is config.json as published repositories of these families have it.
type config struct {
	Architectures    []string `json:"architectures"`
	ModelType        string   `json:"model_type"`
	VocabSize        int      `json:"vocab_size"`
	HiddenSize       int      `json:"hidden_size"`
	IntermediateSize int      `json:"intermediate_size"`
	Layers           int      `json:"num_hidden_layers"`
	Heads            int      `json:"num_attention_heads"`
	KVHeads          int      `json:"num_key_value_heads"`
	HeadDim          int      `json:"head_dim"`
	HiddenAct        string   `json:"hidden_act"`
	Context          int      `json:"max_position_embeddings"`
	Eps              float32  `json:"rms_norm_eps"`
	RopeTheta        float32  `json:"rope_theta"`
	RopeScaling      *int     `json:"rope_scaling"`
	AttentionBias    bool     `json:"attention_bias"`
	SlidingWindow    *int     `json:"sliding_window"`
	Tied             bool     `json:"tie_word_embeddings"`
	DType            string   `json:"torch_dtype"`
	BOS              int      `json:"bos_token_id"`
	EOS              int      `json:"eos_token_id"`
	mixtureConfig
}

func (s *Shape) config(dtype string) config {
	v := vocab{s.Vocab}
	return config{
		Architectures: []string{s.class}, ModelType: s.family, VocabSize: s.Vocab, HiddenSize: s.Hidden, IntermediateSize: s.FFN,
		Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, HiddenAct: "silu",
		Context: s.Context, Eps: s.Eps, RopeTheta: s.RopeBase, Tied: s.Tied, DType: dtype,
		BOS: v.endOfText(), EOS: v.endOfTurn(), mixtureConfig: s.mixtureConfig(),
	}
}

// generationConfig carries the sampling defaults.
type generationConfig struct {
	BOS         int     `json:"bos_token_id"`
	EOS         []int   `json:"eos_token_id"`
	DoSample    bool    `json:"do_sample"`
	Temperature float64 `json:"temperature"`
	TopK        int     `json:"top_k"`
	TopP        float64 `json:"top_p"`
}

// tokenizerConfig is tokenizer_config.json.
type tokenizerConfig struct {
	Class    string  `json:"tokenizer_class"`
	AddBOS   bool    `json:"add_bos_token"`
	BOS      *string `json:"bos_token"`
	EOS      string  `json:"eos_token"`
	Pad      string  `json:"pad_token"`
	Longest  int     `json:"model_max_length"`
	Template string  `json:"chat_template"`
}

// writeTexts writes the files beside the weights.
func (s *Shape) writeTexts(dir, dtype string) error {
	v := vocab{s.Vocab}
	for name, value := range map[string]any{
		"config.json": s.config(dtype),
		"generation_config.json": generationConfig{
			BOS: v.endOfText(), EOS: []int{v.endOfTurn(), v.endOfText()}, DoSample: true,
			Temperature: defaultTemperature, TopK: defaultTopK, TopP: defaultTopP,
		},
		"tokenizer_config.json": tokenizerConfig{
			Class: "PreTrainedTokenizerFast", EOS: specials[2], Pad: specials[0], Longest: s.Context, Template: chatML,
		},
	} {
		data, err := json.MarshalIndent(value, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), append(data, '\n'), 0o666)
		}
		if err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	err = s.writeTokenizer(w)
	if err == nil {
		err = w.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// writeTokenizer streams tokenizer.json.
func (s *Shape) writeTokenizer(w io.Writer) error {
	v := vocab{s.Vocab}
	p := &printer{w: w}
	p.printf(`{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [`)
	for i, text := range specials {
		p.printf(`%s{"id": %d, "content": %s, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}`,
			comma(i), v.endOfText()+i, quote(text))
	}
	p.printf("],\n"+`"normalizer": null, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [`+
		`{"type": "Split", "pattern": {"Regex": %s}, "behavior": "Isolated", "invert": false}, `+
		`{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},`+"\n", quote(s.split))
	p.printf(`"post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},` + "\n")
	p.printf(`"model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, `+
		`"end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": %v, "vocab": {`+"\n", s.ignoreMerges)
	for id, t := range v.tokens() {
		if id < v.endOfText() {
			p.printf("%s%s: %d", comma(id), quote(string(t.text)), id)
		}
	}
	p.printf("},\n" + `"merges": [`)
	rank := 0
	for pair := range v.pairs() {
		p.printf("%s%s", comma(rank), quote(string(pair)))
		rank++
	}
	p.printf("]}}\n")
	return p.err
}

// A printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ", "
}

// quote is s as JSON, with <, > and & as they are.
func quote(s string) string {
	var b jsonBuffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""` // a string always encodes
	}
	return string(b[:len(b)-1])
}

type jsonBuffer []byte

func (b *jsonBuffer) Write(p []byte) (int, error) { *b = append(*b, p...); return len(p), nil }
