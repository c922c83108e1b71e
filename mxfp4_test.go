package spillway

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/testutil"
)

// Experts in MXFP4, as gpt-oss was released, give the bits that their decoded values give.
func TestExpertsMXFP4(t *testing.T) {
	dir := testutil.Shared(t, "oracle/gpt_oss")
	packed, plain := map[string]safetensors.Array{}, map[string]safetensors.Array{}
	for name, a := range readArrays(t, filepath.Join(dir, "model.safetensors")) {
		if !strings.HasSuffix(name, "_proj") {
			packed[name], plain[name] = a, a
			continue
		}
		blocks, scales, decoded := packExperts(t, a)
		packed[name+"_blocks"], packed[name+"_scales"], plain[name] = blocks, scales, decoded
	}
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	quantized := strings.Replace(string(config), "{", `{"quantization_config": {"quant_method": "mxfp4"},`, 1)
	o := ModelOptions{Context: 64, HeadRows: 64, Exact: true}
	got := promptLogits(t, openTest(t, arrayFolder(t, quantized, packed), o))
	want := promptLogits(t, openTest(t, arrayFolder(t, string(config), plain), o))
	if !bytes.Equal(mem.FromFloat32s(got), mem.FromFloat32s(want)) {
		t.Errorf("logits differ by %.3g", relative(got, want))
	}
	o.Exact = false
	if near := promptLogits(t, openTest(t, arrayFolder(t, quantized, packed), o)); relative(near, want) > 5e-3 || slices.Equal(near, want) {
		t.Errorf("the integer path is %.3g away", relative(near, want))
	}
}

// packExperts rounds a stack [experts, inputs, outputs] to MXFP4: codes [experts, outputs, inputs/32, 16], two a
// byte, the low half first, scales [experts, outputs, inputs/32], and the stack of what they mean.
func packExperts(t *testing.T, a safetensors.Array) (blocks, scales, decoded safetensors.Array) {
	t.Helper()
	experts, in, out := a.Shape[0], a.Shape[1], a.Shape[2]
	values := slices.Clone(floats(t, a))
	row, raw := make([]float32, in), make([]byte, quant.MXFP4.RowBytes(in))
	for e := range experts {
		stack := values[e*in*out:][:in*out]
		for r := range out {
			for k := range row {
				row[k] = stack[k*out+r]
			}
			if err := quant.EncodeRow(quant.MXFP4, raw, row); err != nil {
				t.Fatal(err)
			}
			if err := quant.DecodeRow(quant.MXFP4, row, raw); err != nil {
				t.Fatal(err)
			}
			for k, v := range row {
				stack[k*out+r] = v
			}
			for at := 0; at < len(raw); at += 17 {
				scales.Data = append(scales.Data, raw[at])
				codes := raw[at+1:][:16]
				for i := 0; i < 32; i += 2 {
					blocks.Data = append(blocks.Data, half(codes, i)|half(codes, i+1)<<4)
				}
			}
		}
	}
	blocks.DType, blocks.Shape = "U8", []int{experts, out, in / 32, 16}
	scales.DType, scales.Shape = "U8", []int{experts, out, in / 32}
	return blocks, scales, safetensors.Float32s("", a.Shape, values)
}

// half is the code of value i of a block in GGUF's order.
func half(codes []byte, i int) byte { return codes[i%16] >> (i / 16 * 4) & 15 }

// arrayFolder writes a checkpoint.
func arrayFolder(t *testing.T, config string, arrays map[string]safetensors.Array) string {
	t.Helper()
	dir := t.TempDir()
	var list []safetensors.Array
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		a := arrays[name]
		a.Name = name
		list = append(list, a)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, list); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"config.json": []byte(config), "model.safetensors": b.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
