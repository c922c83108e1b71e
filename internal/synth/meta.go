package synth

// Sampling defaults that the files carry: what people use with small chat models.
const (
	defaultTemperature = 0.8
	defaultTopK        = 40
	defaultTopP        = 0.95
)

// An entry is a metadata key of a GGUF file.
type entry struct {
	key   string
	value any
}

// metadata is what llama.cpp wants to know about a model.
func metadata(s *Shape, m mix) []entry {
	arch := s.family
	if s.arch != "" {
		arch = s.arch
	}
	key := func(name string) string { return arch + "." + name }
	v := vocab{s.Vocab}
	all := []entry{
		{"general.architecture", arch},
		{"general.type", "model"},
		{"general.name", s.Name + "-synthetic"},
		{"general.description", "random weights in a published shape, for measurements"},
		{"general.file_type", m.fileType},
		{"general.quantization_version", uint32(2)},
		{"general.sampling.temp", float32(defaultTemperature)},
		{"general.sampling.top_k", int32(defaultTopK)},
		{"general.sampling.top_p", float32(defaultTopP)},
		{key("block_count"), uint32(s.Layers)},
		{key("context_length"), uint32(s.Context)},
		{key("embedding_length"), uint32(s.Hidden)},
		{key("feed_forward_length"), uint32(s.FFN)},
		{key("attention.head_count"), uint32(s.Heads)},
		{key("attention.head_count_kv"), uint32(s.KVHeads)},
		{key("attention.key_length"), uint32(s.HeadDim)},
		{key("attention.value_length"), uint32(s.HeadDim)},
		{key("attention.layer_norm_rms_epsilon"), s.Eps},
		{key("rope.freq_base"), s.RopeBase},
		{key("rope.dimension_count"), uint32(s.HeadDim)},
		{key("vocab_size"), uint32(s.Vocab)},
	}
	all = append(all, s.mixtureMetadata(key)...)
	return append(all, v.metadata(s.pre)...)
}

// Token types of GGUF.
const (
	normalToken  = 1
	controlToken = 3
)

func (v vocab) metadata(pre string) []entry {
	tokens, types := make([]string, 0, v.size), make([]int32, 0, v.size)
	for id, t := range v.tokens() {
		tokens = append(tokens, string(t.text))
		types = append(types, normalToken)
		if id >= v.endOfText() {
			types[id] = controlToken
		}
	}
	merges := make([]string, 0, v.merges())
	for pair := range v.pairs() {
		merges = append(merges, string(pair))
	}
	return []entry{
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", pre},
		{"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", types},
		{"tokenizer.ggml.merges", merges},
		{"tokenizer.ggml.bos_token_id", uint32(v.endOfText())},
		{"tokenizer.ggml.eos_token_id", uint32(v.endOfTurn())},
		{"tokenizer.ggml.padding_token_id", uint32(v.endOfText())},
		{"tokenizer.ggml.add_bos_token", false},
		{"tokenizer.chat_template", chatML},
	}
}
