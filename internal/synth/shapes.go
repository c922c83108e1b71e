package synth

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is the geometry of a published model.
type Shape struct {
	Name string
	*style
	Layers  int
	Hidden  int
	Heads   int
	KVHeads int
	HeadDim int
	FFN     int
	Vocab   int
	Context int // trained limit in tokens

	RopeBase float32
	Eps      float32
	Tied     bool // the output projection is the embedding
	*Mixture      // nil: every layer has one feed-forward network
}

// Mixture is the geometry of a shape's experts, in every layer.
type Mixture struct {
	Experts int
	Used    int // by each token
	Width   int
}

// A style is what the shapes of one family share.
type style struct {
	family       string // config.json's model_type, general.architecture
	class        string // config.json's architectures
	qkNorm       bool   // a norm of each query and key head
	qkvBias      bool
	permuted     bool   // GGUF files hold query and key rows in the order of interleaved rotation
	pre          string // GGUF's name of the rule that splits text before merging
	split        string // the same as a pattern
	ignoreMerges bool   // words that are tokens are not merged

	arch      string // general.architecture, if it isn't the family
	normWhole bool   // qkNorm is over all heads together
	unit      bool   // weights of the chosen experts sum to 1
	oss       bool   // what is special about gpt-oss: biases and sinks, windows, YaRN, and a norm's name
	ffn       string // experts' part of names in Hugging Face folders
	gateUp    [3]string
}

// The splitting rules of Llama 3 and Qwen 2; they differ in how many digits stay together.
const (
	splitLlama = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	splitQwen  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

var (
	llama = &style{family: "llama", class: "LlamaForCausalLM", permuted: true, pre: "llama-bpe", split: splitLlama, ignoreMerges: true}
	qwen2 = &style{family: "qwen2", class: "Qwen2ForCausalLM", qkvBias: true, pre: "qwen2", split: splitQwen}
	qwen3 = &style{family: "qwen3", class: "Qwen3ForCausalLM", qkNorm: true, pre: "qwen2", split: splitQwen}

	olmoe = &style{family: "olmoe", class: "OlmoeForCausalLM", qkNorm: true, normWhole: true, pre: "qwen2", split: splitQwen,
		ffn: "mlp", gateUp: [3]string{"gate_proj", "up_proj", "down_proj"}}
	qwen3moe = &style{family: "qwen3_moe", arch: "qwen3moe", class: "Qwen3MoeForCausalLM", qkNorm: true, unit: true, pre: "qwen2", split: splitQwen,
		ffn: "mlp", gateUp: [3]string{"gate_proj", "up_proj", "down_proj"}}
	mixtral = &style{family: "mixtral", arch: "llama", class: "MixtralForCausalLM", permuted: true, pre: "llama-bpe", split: splitLlama,
		ignoreMerges: true, ffn: "block_sparse_moe", gateUp: [3]string{"w1", "w3", "w2"}}
	gptOSS = &style{family: "gpt_oss", arch: "gpt-oss", class: "GptOssForCausalLM", qkvBias: true, oss: true, pre: "qwen2", split: splitQwen}
)

// name, style, layers, hidden, heads, kv heads, head size, ffn, vocabulary, context, rope base, eps, tied, experts
var shapes = []Shape{
	{"toy", llama, 4, 512, 8, 2, 64, 1280, 4096, 2048, 1e4, 1e-5, false, nil}, // no release: large enough to stream, small enough for a test
	{"smollm2-135m", llama, 30, 576, 9, 3, 64, 1536, 49152, 8192, 1e5, 1e-5, true, nil},
	{"tinyllama-1.1b", llama, 22, 2048, 32, 4, 64, 5632, 32000, 2048, 1e4, 1e-5, false, nil},
	{"llama-7b", llama, 32, 4096, 32, 32, 128, 11008, 32000, 4096, 1e4, 1e-5, false, nil},
	{"llama-13b", llama, 40, 5120, 40, 40, 128, 13824, 32000, 4096, 1e4, 1e-5, false, nil},
	{"llama3-8b", llama, 32, 4096, 32, 8, 128, 14336, 128256, 8192, 5e5, 1e-5, false, nil},
	{"llama3.2-1b", llama, 16, 2048, 32, 8, 64, 8192, 128256, 8192, 5e5, 1e-5, true, nil},
	{"qwen2.5-0.5b", qwen2, 24, 896, 14, 2, 64, 4864, 151936, 32768, 1e6, 1e-6, true, nil},
	{"qwen2.5-7b", qwen2, 28, 3584, 28, 4, 128, 18944, 152064, 32768, 1e6, 1e-6, false, nil},
	{"qwen3-0.6b", qwen3, 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1e6, 1e-6, true, nil},
	{"qwen3-4b", qwen3, 36, 2560, 32, 8, 128, 9728, 151936, 40960, 1e6, 1e-6, true, nil},
	{"qwen3-8b", qwen3, 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1e6, 1e-6, false, nil},
	{"toy-moe", olmoe, 4, 256, 4, 4, 64, 256, 4096, 2048, 1e4, 1e-5, false, &Mixture{16, 3, 256}},           // no release, as toy
	{"storyteller-moe", qwen3moe, 4, 256, 8, 4, 32, 256, 4096, 1024, 1e4, 1e-6, false, &Mixture{32, 4, 64}}, // its routing was learnt, see docs/experts.md
	{"olmoe", olmoe, 16, 2048, 16, 16, 128, 1024, 50304, 4096, 1e4, 1e-5, false, &Mixture{64, 8, 1024}},
	{"qwen3-30b-a3b", qwen3moe, 48, 2048, 32, 4, 128, 6144, 151936, 40960, 1e6, 1e-6, false, &Mixture{128, 8, 768}},
	{"gpt-oss-20b", gptOSS, 24, 2880, 64, 8, 64, 2880, 201088, 131072, 150000, 1e-5, false, &Mixture{32, 4, 2880}},
	{"mixtral", mixtral, 32, 4096, 32, 8, 128, 14336, 32000, 32768, 1e6, 1e-5, false, &Mixture{8, 2, 14336}},
}

// Shapes returns the known shapes, from small to large within a family.
func Shapes() []Shape { return slices.Clone(shapes) }

// LookupShape returns the shape of that name; the error lists the names.
func LookupShape(name string) (Shape, error) {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		if strings.EqualFold(s.Name, name) {
			return s, nil
		}
		names[i] = s.Name
	}
	return Shape{}, fmt.Errorf("unknown shape %q; there are %s", name, strings.Join(names, ", "))
}

// resize returns the shape with another number of layers and another context where they are not 0.
func (s Shape) resize(layers, context int) (Shape, error) {
	const most = 1 << 20
	if layers < 0 || layers > 4096 {
		return s, fmt.Errorf("%d layers; 1 to 4096 would do", layers)
	}
	if context < 0 || context > most {
		return s, fmt.Errorf("a context of %d tokens; 1 to %d would do", context, most)
	}
	if layers > 0 {
		s.Layers = layers
	}
	if context > 0 {
		s.Context = context
	}
	return s, nil
}
