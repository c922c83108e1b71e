package synth

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is the geometry of a published model.
type Shape struct {
	Name    string
	Family  string // as in config.json's model_type and in general.architecture: llama, qwen2, qwen3
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
}

// qkNorm and qkvBias tell what the families' layers have besides llama's.
func (s *Shape) qkNorm() bool  { return s.Family == "qwen3" }
func (s *Shape) qkvBias() bool { return s.Family == "qwen2" }

// permuted reports whether GGUF files of the family hold query and key rows in the order of
// interleaved rotation.
func (s *Shape) permuted() bool { return s.Family == "llama" }

// name, family, layers, hidden, heads, kv heads, head size, ffn, vocabulary, context, rope base, eps, tied
var shapes = []Shape{
	{"smollm2-135m", "llama", 30, 576, 9, 3, 64, 1536, 49152, 8192, 1e5, 1e-5, true},
	{"tinyllama-1.1b", "llama", 22, 2048, 32, 4, 64, 5632, 32000, 2048, 1e4, 1e-5, false},
	{"llama-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32000, 4096, 1e4, 1e-5, false},
	{"llama-13b", "llama", 40, 5120, 40, 40, 128, 13824, 32000, 4096, 1e4, 1e-5, false},
	{"llama3-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192, 5e5, 1e-5, false},
	{"llama3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 8192, 5e5, 1e-5, true},
	{"qwen2.5-0.5b", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, 1e6, 1e-6, true},
	{"qwen2.5-7b", "qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 32768, 1e6, 1e-6, false},
	{"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1e6, 1e-6, true},
	{"qwen3-4b", "qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960, 1e6, 1e-6, true},
	{"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1e6, 1e-6, false},
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
