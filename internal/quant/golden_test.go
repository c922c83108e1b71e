package quant

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/testutil"
)

// array is a tensor of a golden file: raw bytes, and its shape.
type array struct {
	shape []int
	data  []byte
}

// rows cuts the array's bytes along its first dimension.
func (a array) rows() [][]byte {
	return slices.Collect(slices.Chunk(a.data, len(a.data)/a.shape[0]))
}

// readGolden reads a small safetensors file. (quant is below the reader of that format.)
func readGolden(t *testing.T, path string) map[string]array {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 8 + int(binary.LittleEndian.Uint64(b))
	var header map[string]struct {
		Shape   []int
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(b[8:n], &header); err != nil {
		t.Fatal(err)
	}
	delete(header, "__metadata__")
	out := map[string]array{}
	for name, h := range header {
		out[name] = array{h.Shape, b[n+h.Offsets[0] : n+h.Offsets[1]]}
	}
	return out
}

// goldens are the subset in testdata and the whole files where they are present.
func goldens(t *testing.T, name string, check func(t *testing.T, g map[string]array)) {
	t.Run("subset", func(t *testing.T) { check(t, readGolden(t, "testdata/"+name+".safetensors")) })
	t.Run("whole", func(t *testing.T) {
		check(t, readGolden(t, testutil.Shared(t, "oracle-gguf/"+name+".safetensors")))
	})
}

func typeNamed(t *testing.T, name string) Type {
	t.Helper()
	for typ, info := range infos {
		if info.Name == name {
			return typ
		}
	}
	t.Fatalf("no type is named %s", name)
	return 0
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	decodeF32(out, b)
	return out
}

// sameBits compares f32 values: NaN equals NaN, everything else bit for bit.
func sameBits(a, b float32) bool {
	return a != a && b != b || math.Float32bits(a) == math.Float32bits(b)
}

func TestDecodeGoldens(t *testing.T) {
	goldens(t, "dequant", func(t *testing.T, g map[string]array) {
		types := 0
		for _, key := range slices.Sorted(maps.Keys(g)) {
			name, ok := strings.CutSuffix(key, ".raw")
			if !ok {
				continue
			}
			types++
			t.Run(name, func(t *testing.T) { checkDecode(t, typeNamed(t, name), g[key].data, floats(g[name+".f32"].data)) })
		}
		if types < 27 {
			t.Errorf("only %d types have goldens", types)
		}
	})
}

func checkDecode(t *testing.T, typ Type, raw []byte, want []float32) {
	got := make([]float32, len(want))
	if err := DecodeRow(typ, got, raw); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !sameBits(got[i], want[i]) {
			n := typ.BlockValues()
			t.Fatalf("block %d value %d: %v (%08x), not %v (%08x)", i/n, i%n,
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

func TestEncodeGoldens(t *testing.T) {
	exact := []Type{F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, TQ1_0, TQ2_0, MXFP4}
	goldens(t, "quant", func(t *testing.T, g map[string]array) {
		for _, typ := range exact {
			t.Run(typ.String(), func(t *testing.T) {
				for row, want := range g[typ.String()+".raw"].rows() {
					x := floats(g["input"].rows()[row])
					got := make([]byte, len(want))
					if err := EncodeRow(typ, got, x); err != nil {
						t.Fatal(err)
					}
					for i := range want {
						if got[i] != want[i] {
							n := typ.BlockBytes()
							t.Fatalf("row %d block %d byte %d: %#x, not %#x", row, i/n, i%n, got[i], want[i])
						}
					}
				}
			})
		}
	})
}

// TestEncodeQuality compares the error of our simple encoders with llama.cpp's searches.
func TestEncodeQuality(t *testing.T) {
	goldens(t, "quant", func(t *testing.T, g map[string]array) {
		for _, key := range slices.Sorted(maps.Keys(g)) {
			name, ok := strings.CutPrefix(key, "llamacpp.")
			if !ok {
				continue
			}
			typ := typeNamed(t, strings.TrimSuffix(name, ".raw"))
			t.Run(typ.String(), func(t *testing.T) {
				for row, raw := range g[key].rows() {
					x := floats(g["input"].rows()[row])
					ours, theirs := encodedError(t, typ, x), decodedError(t, typ, x, raw)
					ratio := max(worstRatio[typ], 1)
					if ours > ratio*theirs*1.001 {
						t.Errorf("row %d: rms error %.4g is above %.4g × %.4g of llama.cpp", row, ours, ratio, theirs)
					}
				}
			})
		}
	})
}

// worstRatio is how much larger than llama.cpp's our rms error may be, on any row of the golden; 1
// where it is not listed.
var worstRatio = map[Type]float64{
	Q4_K: 1.15, Q5_K: 1.25, Q6_K: 1.1,
	IQ2XXS: 1.15, IQ2XS: 1.15, IQ2S: 1.15, IQ3XXS: 1.05, IQ1S: 1.1,
}

func encodedError(t *testing.T, typ Type, x []float32) float64 {
	raw := make([]byte, typ.RowBytes(len(x)))
	if err := EncodeRow(typ, raw, x); err != nil {
		t.Fatal(err)
	}
	return decodedError(t, typ, x, raw)
}

func decodedError(t *testing.T, typ Type, x []float32, raw []byte) float64 {
	y := make([]float32, len(x))
	if err := DecodeRow(typ, y, raw); err != nil {
		t.Fatal(err)
	}
	var sum float64
	for i := range x {
		e := float64(x[i]) - float64(y[i])
		sum += e * e
	}
	return math.Sqrt(sum / float64(len(x)))
}

func BenchmarkDecodeRow(b *testing.B) {
	for _, typ := range []Type{F16, Q4_0, Q8_0, Q4_K, Q6_K, IQ2XS, IQ4XS, TQ1_0, MXFP4} {
		b.Run(typ.String(), func(b *testing.B) {
			dst, src := make([]float32, 4096), make([]byte, typ.RowBytes(4096))
			b.SetBytes(4 * 4096)
			b.ReportAllocs()
			for b.Loop() {
				if err := DecodeRow(typ, dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeRow(b *testing.B) {
	src := make([]float32, 4096)
	for i := range src {
		src[i] = float32(math.Sin(float64(i) * 1.7))
	}
	for typ := range Type(len(encoders)) {
		if !CanEncode(typ) {
			continue
		}
		b.Run(typ.String(), func(b *testing.B) {
			dst := make([]byte, typ.RowBytes(len(src)))
			for b.Loop() {
				if err := EncodeRow(typ, dst, src); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(src))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mvalues/s")
		})
	}
}
