package models_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/repack"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/models"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

const schemesDir = "../../testdata/schemes"

// changed is a checkpoint of schemesDir after change; config is quantization_config.
func changed(t *testing.T, name string, change func(config map[string]any, tensors map[string]safetensors.Array)) string {
	t.Helper()
	f, err := vfs.OS().Open(filepath.Join(schemesDir, name, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensors, err := safetensors.ReadAll(f, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(schemesDir, name, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	change(config["quantization_config"].(map[string]any), tensors)
	return save(t, config, tensors)
}

func save(t *testing.T, config map[string]any, tensors map[string]safetensors.Array) string {
	t.Helper()
	var arrays []safetensors.Array
	for _, key := range slices.Sorted(maps.Keys(tensors)) {
		a := tensors[key]
		a.Name = key
		arrays = append(arrays, a)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, arrays); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, content := range map[string][]byte{"model.safetensors": b.Bytes(), "config.json": data} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func describeDir(t *testing.T, dir string) (*checkpoint.Catalog, error) {
	t.Helper()
	cat, err := checkpoint.Open(vfs.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cat.Close() })
	_, err = models.Describe(cat)
	return cat, err
}

type (
	object = map[string]any
	arrays = map[string]safetensors.Array
)

const (
	q    = "model.layers.0.self_attn.q_proj"
	down = "model.layers.0.mlp.down_proj"
)

// reshaped gives a tensor another shape, cutting or adding data.
func reshaped(name string, dtype string, width int, shape ...int) func(object, arrays) {
	return func(_ object, a arrays) {
		for _, d := range shape {
			width *= d
		}
		a[name] = safetensors.Array{DType: dtype, Shape: shape, Data: make([]byte, width)}
	}
}

func without(name string) func(object, arrays) {
	return func(_ object, a arrays) { delete(a, name) }
}

func setting(key string, value any) func(object, arrays) {
	return func(c object, _ arrays) { c[key] = value }
}

// weightSetting sets a key of the weights of compressed-tensors' first group.
func weightSetting(key string, value any) func(object, arrays) {
	return func(c object, _ arrays) {
		c["config_groups"].(object)["group_0"].(object)["weights"].(object)[key] = value
	}
}

// TestSchemesRefused has checkpoints that do not fit together: errors name the tensor or the setting.
func TestSchemesRefused(t *testing.T) {
	for name, c := range map[string]struct {
		from   string
		change func(object, arrays)
		want   string
	}{
		"unknown":            {"gptq", setting("quant_method", "aqlm"), `names the scheme "aqlm", which is not supported; supported are awq,`},
		"nameless":           {"gptq", setting("quant_method", nil), `names the scheme ""`},
		"bits":               {"gptq", setting("bits", 5), `tensor "` + q + `.qweight": weights of 5 bits`},
		"other bits":         {"gptq", setting("bits", 8), `tensor "` + q + `.qweight" has shape [8 32], expected [16 32]`},
		"bits as text":       {"gptq", setting("bits", "4"), "quantization_config.bits"},
		"group":              {"gptq", setting("group_size", 64), `tensor "` + q + `.scales" has shape [2 32], expected [1 32]`},
		"odd group":          {"gptq", setting("group_size", 24), `tensor "` + q + `.scales" has shape [2 32], expected [3 32]`},
		"group of zero":      {"gptq", setting("group_size", nil), "quantization_config.group_size"},
		"marlin":             {"gptq", setting("checkpoint_format", "marlin"), `checkpoint_format "marlin"`},
		"dynamic":            {"gptq", setting("dynamic", object{"-:.*": object{}}), "dynamic"},
		"no scales":          {"gptq", without(q + ".scales"), `tensor "` + q + `.scales" is missing`},
		"no zeros":           {"gptq", without(q + ".qzeros"), `tensor "` + q + `.qzeros" is missing`},
		"no codes":           {"gptq", without(q + ".qweight"), "no weight for layer 0: attn.q.weight"},
		"no order":           {"gptq-order", without(q + ".g_idx"), `tensor "` + q + `.qweight": the configuration says that columns were reordered`},
		"short order":        {"gptq-order", reshaped(q+".g_idx", "I32", 4, 32), `tensor "` + q + `.g_idx" has shape [32]`},
		"codes of a type":    {"gptq", reshaped(q+".qweight", "I16", 2, 8, 64), `tensor "` + q + `.qweight" has the type I16, expected I32`},
		"scales of a type":   {"gptq", reshaped(q+".scales", "I32", 4, 2, 64), `tensor "` + q + `.scales" has the type I32`},
		"gemv":               {"awq", setting("version", "gemv"), `version "gemv"`},
		"awq of 3 bits":      {"awq", setting("bits", 3), "weights of 3 bits"},
		"awq shape":          {"awq", reshaped(down+".qweight", "I32", 4, 8, 96), `tensor "` + down + `.qweight" has shape [8 96], expected [96 8]`},
		"fp8 without scale":  {"fp8-block", without(q + ".weight_scale_inv"), `tensor "` + q + `.weight" has no scale`},
		"fp8 scale":          {"fp8-block", reshaped(q+".weight_scale_inv", "F32", 4, 3, 2), `tensor "` + q + `.weight_scale_inv" has shape [3 2]`},
		"fp8 block":          {"fp8-block", setting("weight_block_size", []int{16, 48}), q + `.weight_scale_inv" has shape [1 2], which does not go with 32 × 64 weights in blocks of 16 × 48`},
		"fp8 odd block":      {"fp8-block", setting("weight_block_size", []int{32}), "weight_block_size"},
		"fp8 of zero":        {"fp8-block", setting("weight_block_size", []int{0, 32}), "weight_block_size"},
		"fp8 left out":       {"fp8-block", setting("modules_to_not_convert", []string{"q_proj"}), "leaves it out"},
		"fp8 shape":          {"fp8-block", reshaped(q+".weight", "F8_E4M3", 1, 64, 32), `tensor "` + q + `.weight" has shape [64 32]`},
		"format":             {"ct-int4", setting("format", "marlin-24"), `format "marlin-24" of compressed-tensors`},
		"kind":               {"ct-int4", weightSetting("type", "float"), `format "pack-quantized" of compressed-tensors is not supported for 4-bit float`},
		"no groups":          {"ct-int4", setting("config_groups", nil), "config_groups"},
		"sparse":             {"ct-int4", setting("sparsity_config", object{"format": "sparse-24-bitmask"}), "sparse-24-bitmask"},
		"rotated":            {"ct-int4", setting("transform_config", object{"config_groups": object{}}), "transform_config"},
		"expression":         {"ct-int4", setting("ignore", []string{"re:(?!x)"}), "cannot be read"},
		"counted expression": {"ct-int4", setting("ignore", []string{"re:(abc){900}"}), "counts repetitions"},
		"many expressions":   {"ct-int4", setting("ignore", slices.Repeat([]string{"re:a"}, 257)), "more than 256 expressions"},
		"long expressions":   {"ct-int4", setting("ignore", []string{"re:" + strings.Repeat("a", 16<<10+1)}), "16384 bytes"},
		"order of floats":    {"ct-fp8", weightSetting("actorder", "group"), "float weights with reordered columns"},
		"other order":        {"ct-int4-order", weightSetting("actorder", "random"), `the actorder "random"`},
		"no zero points":     {"ct-int4", without(q + ".weight_zero_point"), `tensor "` + q + `.weight_zero_point" is missing`},
		"ignored":            {"ct-int4", setting("ignore", []string{"re:.*q_proj"}), "no weight for layer 0: attn.q.weight"},
		"float zeros":        {"ct-fp8", weightSetting("symmetric", false), "zero points of float weights are not supported"},
		"packed zeros":       {"ct-int4", reshaped(q+".weight_zero_point", "I32", 4, 8, 3), `tensor "` + q + `.weight_zero_point" has shape [8 3], expected [4 2]`},
		"packed scale":       {"ct-int4", without(q + ".weight_scale"), `tensor "` + q + `.weight_scale" is missing`},
		"order by its alias": {"ct-int4-order", func(c object, a arrays) {
			weightSetting("actorder", "dynamic")(c, a)
			delete(a, q+".weight_g_idx")
		}, "there is no g_idx"},
		"ordered embedding": {"ct-int4-order", func(c object, a arrays) {
			const embed = "model.embed_tokens"
			c["config_groups"].(object)["group_0"].(object)["targets"] = []string{"Linear", "Embedding"}
			delete(a, embed+".weight")
			for _, part := range []string{".weight_packed", ".weight_scale", ".weight_g_idx"} {
				a[embed+part] = a[q+part] // it has as many rows
			}
		}, `tensor "model.embed_tokens.weight_packed": an embedding with reordered columns`},
		"packed order":         {"ct-int4-order", without(q + ".weight_g_idx"), "there is no g_idx"},
		"int8 scale":           {"ct-int8", reshaped(q+".weight_scale", "F32", 4, 63, 1), `tensor "` + q + `.weight_scale" has shape [63 1]`},
		"nvfp4 scale":          {"ct-nvfp4", reshaped(q+".weight_scale", "F8_E4M3", 1, 64, 2), `tensor "` + q + `.weight_scale" has shape [64 2], expected [32 4]`},
		"nvfp4 tensor":         {"ct-nvfp4", reshaped(q+".weight_global_scale", "F32", 4, 2), q + `.weight_global_scale" has shape [2] of F32, expected one F32`},
		"nvfp4 without tensor": {"ct-nvfp4", without(q + ".weight_global_scale"), q + `.weight_global_scale" is missing`},
		"nf4 state":            {"bnb-nf4", without(q + ".weight.quant_state.bitsandbytes__nf4"), `tensor "` + q + `.weight" has no quant_state`},
		"nf4 damaged state":    {"bnb-nf4", reshaped(q+".weight.quant_state.bitsandbytes__nf4", "U8", 1, 90), "invalid character"},
		"nf4 long state":       {"bnb-nf4", reshaped(q+".weight.quant_state.bitsandbytes__nf4", "U8", 1, 1<<15), "expected 1 to 16384"},
		"nf4 absmax":           {"bnb-nf4", reshaped(q+".weight.absmax", "U8", 1, 63), `tensor "` + q + `.weight.absmax" has shape [63], expected [32]`},
		"nf4 nested":           {"bnb-nf4", without(q + ".weight.nested_absmax"), q + `.weight.nested_absmax" is missing`},
		"nf4 map":              {"bnb-nf4", reshaped(q+".weight.nested_quant_map", "F32", 4, 16), q + `.weight.nested_quant_map" has shape [16]`},
		"nf4 codes":            {"bnb-nf4", reshaped(q+".weight", "U8", 1, 2047, 1), `tensor "` + q + `.weight" has 2047 bytes`},
		"int8 without scb":     {"bnb-int8", without(q + ".SCB"), q + `.SCB" is missing`},
		"int8 turned":          {"bnb-int8", func(_ object, a arrays) { a[q+".weight_format"].Data[0] = 1 }, "has the format 1 of bitsandbytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := describeDir(t, changed(t, c.from, c.change))
			var config *models.ConfigError
			if !errors.As(err, &config) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; expected %s", err, c.want)
			}
		})
	}
}

// TestSchemesMixed has modules that are left out of the scheme, and groups of compressed-tensors that
// overlap.
func TestSchemesMixed(t *testing.T) {
	plain := func(a arrays, module string, rows, cols int) {
		for name := range a {
			if strings.HasPrefix(name, module+".") {
				delete(a, name)
			}
		}
		a[module+".weight"] = safetensors.Array{DType: "BF16", Shape: []int{rows, cols}, Data: make([]byte, 2*rows*cols)}
	}
	for name, c := range map[string]struct {
		from   string
		change func(object, arrays)
		want   map[string]quant.Type
	}{
		"gptq": {"gptq", func(_ object, a arrays) { plain(a, q, 32, 64) }, map[string]quant.Type{q + ".weight": quant.BF16, down + ".qweight": quant.Int4x32}},
		"ignore": {"ct-int4", func(c object, a arrays) {
			plain(a, q, 32, 64)
			c["ignore"] = []string{"re:.*self_attn\\.q_.*"}
		}, map[string]quant.Type{q + ".weight": quant.BF16, down + ".weight_packed": quant.Int4x32}},
		"groups": {"ct-int4", func(c object, a arrays) {
			a[down+".weight"] = safetensors.Array{DType: "F8_E4M3", Shape: []int{64, 96}, Data: make([]byte, 64*96)}
			a[down+".weight_scale"] = safetensors.Float32s("", []int{1}, []float32{1})
			a["model.layers.0.mlp.up_proj.weight"] = safetensors.Array{DType: "I8", Shape: []int{96, 64}, Data: make([]byte, 64*96)}
			a["model.layers.0.mlp.up_proj.weight_scale"] = safetensors.Float32s("", []int{96, 1}, make([]float32, 96))
			delete(a, "model.layers.0.mlp.up_proj.weight_zero_point")
			delete(a, down+".weight_zero_point")
			c["config_groups"].(object)["a"] = object{"targets": []string{"re:.*down_proj$"}, "format": "float-quantized", "weights": object{"num_bits": 8, "type": "float", "strategy": "tensor"}}
			c["config_groups"].(object)["z"] = object{"targets": []string{"model.layers.0.mlp.up_proj"}, "format": "int-quantized", "weights": object{"num_bits": 8, "type": "int", "strategy": "channel"}}
		}, map[string]quant.Type{q + ".weight_packed": quant.Int4x32, down + ".weight": quant.E4M3x32, "model.layers.0.mlp.up_proj.weight": quant.Int8x32}},
		"microscaling": {"ct-int4", func(c object, a arrays) {
			plain(a, q, 32, 64) // and then in four bits
			delete(a, q+".weight")
			a[q+".weight_packed"] = safetensors.Array{DType: "U8", Shape: []int{32, 32}, Data: make([]byte, 32*32)}
			a[q+".weight_scale"] = safetensors.Array{DType: "U8", Shape: []int{32, 2}, Data: make([]byte, 32*2)}
			a[down+".weight"] = safetensors.Array{DType: "F8_E4M3", Shape: []int{64, 96}, Data: make([]byte, 64*96)}
			a[down+".weight_scale"] = safetensors.Array{DType: "U8", Shape: []int{64, 3}, Data: make([]byte, 64*3)}
			four := object{"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}
			eight := object{"num_bits": 8, "type": "float", "strategy": "group", "group_size": 32}
			c["config_groups"].(object)["a"] = object{"targets": []string{q}, "format": "mxfp4-pack-quantized", "weights": four}
			c["config_groups"].(object)["b"] = object{"targets": []string{down}, "format": "mxfp8-quantized", "weights": eight}
		}, map[string]quant.Type{q + ".weight_packed": quant.MXFP4, down + ".weight": quant.E4M3x32}},
	} {
		t.Run(name, func(t *testing.T) {
			cat, err := checkpoint.Open(vfs.OS(), changed(t, c.from, c.change))
			if err != nil {
				t.Fatal(err)
			}
			defer cat.Close()
			m, err := models.Describe(cat)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range m.Layout.Matrices {
				if want, ok := c.want[x.Name]; ok && x.Type != want {
					t.Errorf("%s is %v, expected %v", x.Name, x.Type, want)
				}
				delete(c.want, x.Name)
			}
			for name := range c.want {
				t.Errorf("there is no %s", name)
			}
		})
	}
}

// leaves calls f with a function that sets a value, for every value below v.
func leaves(v any, set func(any), f func(set func(any))) {
	f(set)
	switch v := v.(type) {
	case object:
		for key := range v {
			leaves(v[key], func(x any) { v[key] = x }, f)
		}
	case []any:
		for i := range v {
			leaves(v[i], func(x any) { v[i] = x }, f)
		}
	}
}

// TestSchemesHostile sets every value of every configuration to what does not belong there: it is an error of
// the file, or a model whose weights can be read.
func TestSchemesHostile(t *testing.T) {
	dirs, err := filepath.Glob(schemesDir + "/*/config.json")
	if err != nil || len(dirs) < 15 {
		t.Fatal(dirs, err)
	}
	values := []any{nil, -1, 0, 1, 3, 33, 1 << 28, 1e300, 0.5, "x", true, false, []any{}, []any{1 << 28, 1 << 28}, object{}}
	for _, path := range dirs {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dir := changed(t, filepath.Base(filepath.Dir(path)), func(object, arrays) {})
		for n, more := 0, true; more; n++ {
			for _, x := range values {
				var config object
				if err := json.Unmarshal(data, &config); err != nil {
					t.Fatal(err)
				}
				i := 0
				leaves(config["quantization_config"], func(x any) { config["quantization_config"] = x }, func(set func(any)) {
					if i++; i == n+1 {
						set(x)
					}
				})
				if more = n < i; more {
					checkHostile(t, dir, config)
				}
			}
		}
	}
}

// checkHostile describes the checkpoint in dir after it got another configuration, and reads its weights.
func checkHostile(t *testing.T, dir string, config object) {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	cat, err := checkpoint.Open(vfs.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Close()
	var wrong *models.ConfigError
	var missing *nn.MissingError
	if _, err := models.Describe(cat); err != nil {
		if !errors.As(err, &wrong) && !errors.As(err, &missing) {
			t.Errorf("%s: %v (%T)", data, err, err)
		}
		return
	}
	for _, v := range cat.Views {
		view := v.(*repack.File)
		_, err := view.ReadWith(make([]byte, view.Size()), 0, make([]byte, view.ScratchBytes()))
		var damaged *checkpoint.FormatError
		if err != nil && !errors.As(err, &damaged) {
			t.Errorf("%s: %v (%T)", data, err, err)
		}
	}
}
