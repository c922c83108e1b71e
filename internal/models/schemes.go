package models

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/checkpoint/repack"
)

// gptq is GPTQ as AutoGPTQ and GPTQModel write it: qweight, qzeros, scales, g_idx.
type gptq struct {
	bits, group int
	ordered     bool
	zeroPlus    int // what the first format took away from zero points
}

func newGPTQ(c *config, q jsonValues) scheme {
	s := &gptq{bits: c.whole(q, "bits", 2), group: c.whole(q, "group_size", -1), zeroPlus: 1}
	s.ordered, _ = q.flag("desc_act", "")
	format, ok := q.text("checkpoint_format", "")
	if !ok {
		format, _ = q.text("format", "")
	}
	switch format {
	case "", "gptq":
	case "gptq_v2":
		s.zeroPlus = 0
	default:
		c.fail("quantization_config.checkpoint_format %q is not supported: gptq and gptq_v2 are", format)
	}
	if o, ok := q.object("dynamic"); ok && len(o.(jsonValues)) > 0 {
		c.fail("quantization_config.dynamic, which changes the scheme from module to module, is not supported")
	}
	return s
}

func (s *gptq) add(m module) (repack.Matrix, *checkpoint.Tensor, error) {
	x, err := m.exchanged()
	if err != nil || x.Codes == nil {
		return repack.Matrix{}, nil, err
	}
	x.Bits, x.Group, x.ZeroPlus, x.Ordered, x.Order = s.bits, s.group, s.zeroPlus, s.ordered, m.tensor(".g_idx")
	at, err := m.src.view.AddGPTQ(x, m.rows, m.cols)
	return at, x.Codes, err
}

// exchanged finds the tensors that GPTQ and AWQ have; no codes if the module is not quantized.
func (m *module) exchanged() (repack.Ints, error) {
	codes := m.tensor(".qweight")
	if codes == nil {
		return repack.Ints{}, nil
	}
	rest, err := m.need(".scales", ".qzeros")
	if err != nil {
		return repack.Ints{}, err
	}
	return repack.Ints{Codes: codes, Scales: rest[0], Zeros: rest[1]}, nil
}

// awq is AWQ as AutoAWQ writes it.
type awq struct{ bits, group int }

func newAWQ(c *config, q jsonValues) scheme {
	s := &awq{bits: c.whole(q, "bits", 2), group: c.whole(q, "group_size", -1)}
	if version, ok := q.text("version", ""); ok && !strings.EqualFold(version, "gemm") {
		c.fail("quantization_config.version %q of AWQ is not supported: gemm is", version)
	}
	return s
}

func (s *awq) add(m module) (repack.Matrix, *checkpoint.Tensor, error) {
	x, err := m.exchanged()
	if err != nil || x.Codes == nil {
		return repack.Matrix{}, nil, err
	}
	x.Bits, x.Group = s.bits, s.group
	at, err := m.src.view.AddAWQ(x, m.rows, m.cols)
	return at, x.Codes, err
}

// fp8 is FP8 weights with scales, as DeepSeek (fp8) and FBGEMM store them.
type fp8 struct {
	block [2]int
	plain exceptions
}

func newFP8(c *config, q jsonValues) scheme {
	s := &fp8{block: c.block(q, "weight_block_size")}
	s.plain = append(c.patterns(q, "modules_to_not_convert"), c.patterns(q, "ignored_layers")...)
	return s
}

// block reads the rows and columns of a block; zeros if there is none.
func (c *config) block(v values, key string) (b [2]int) {
	list, ok := v.list(key)
	if !ok {
		return b
	}
	for i := range b {
		n := 0.0
		if len(list) == 2 {
			n, _ = list[i].(float64)
		}
		if n < 1 || n > maxDim || n != math.Trunc(n) {
			c.fail("quantization_config.%s is %v, expected rows and columns", key, list)
			return b
		}
		b[i] = int(n)
	}
	return b
}

func (s *fp8) add(m module) (repack.Matrix, *checkpoint.Tensor, error) {
	t := m.tensor(".weight")
	if t == nil || !strings.HasPrefix(t.DType, "F8_") {
		return repack.Matrix{}, nil, nil
	}
	if s.plain.has(m.name) {
		return repack.Matrix{}, nil, fmt.Errorf("tensor %s has the type %s, but the configuration leaves it out of the scheme", container.Name(t.Name), t.DType)
	}
	scale := m.tensor(".weight_scale_inv")
	if scale == nil {
		scale = m.tensor(".weight_scale")
	}
	if scale == nil {
		return repack.Matrix{}, nil, fmt.Errorf("tensor %s has no scale: neither weight_scale_inv nor weight_scale is there", container.Name(t.Name))
	}
	at, err := m.src.view.AddFP8(repack.FP8{Codes: t, Scale: scale, Block: s.block}, m.rows, m.cols)
	return at, t, err
}

// mxfp4 is gpt-oss: only stacks of experts are quantized, which their layers find themselves.
type mxfp4 struct{}

func newMXFP4(*config, jsonValues) scheme { return mxfp4{} }

func (mxfp4) add(module) (repack.Matrix, *checkpoint.Tensor, error) { return repack.Matrix{}, nil, nil }

// bitsAndBytes is nf4, fp4 and int8 of bitsandbytes.
type bitsAndBytes struct{}

func newBitsAndBytes(*config, jsonValues) scheme { return bitsAndBytes{} }

func (bitsAndBytes) add(m module) (repack.Matrix, *checkpoint.Tensor, error) {
	t := m.tensor(".weight")
	switch {
	case t == nil:
		return repack.Matrix{}, nil, nil
	case t.DType == "I8":
		at, err := addSCB(m, t)
		return at, t, err
	case t.DType == "U8" || m.tensor(nf4State) != nil || m.tensor(fp4State) != nil:
		at, err := addNF4(m, t)
		return at, t, err
	}
	return repack.Matrix{}, nil, nil
}

// Tensors that describe a matrix of four bits.
const (
	nf4State = ".weight.quant_state.bitsandbytes__nf4"
	fp4State = ".weight.quant_state.bitsandbytes__fp4"
)

// addSCB adds weights of LLM.int8 (Dettmers et al. 2022): one scale for each row.
func addSCB(m module, t *checkpoint.Tensor) (repack.Matrix, error) {
	scale, err := m.need(".SCB")
	if err != nil {
		return repack.Matrix{}, err
	}
	if f := m.tensor(".weight_format"); f != nil {
		b, err := m.src.bytes(f, 1)
		if err != nil {
			return repack.Matrix{}, err
		}
		if b[0] != 0 {
			return repack.Matrix{}, fmt.Errorf("tensor %s has the format %d of bitsandbytes, only 0 (rows) is supported", container.Name(t.Name), b[0])
		}
	}
	return m.src.view.AddInt8(repack.Ints{Codes: t, Scales: scale[0], Over127: true}, m.rows, m.cols)
}

// quantState is what bitsandbytes says about a matrix of four bits.
type quantState struct {
	Type         string  `json:"quant_type"`
	Block        int     `json:"blocksize"`
	Shape        []int   `json:"shape"`
	NestedBlock  int     `json:"nested_blocksize"`
	NestedOffset float64 `json:"nested_offset"`
}

const maxQuantState = 16 << 10

func addNF4(m module, t *checkpoint.Tensor) (repack.Matrix, error) {
	x := repack.NF4{Codes: t}
	state := m.tensor(nf4State)
	if state == nil {
		state, x.FP4 = m.tensor(fp4State), true
	}
	if state == nil {
		return repack.Matrix{}, fmt.Errorf("tensor %s has no quant_state of nf4 or fp4", container.Name(t.Name))
	}
	raw, err := m.src.bytes(state, maxQuantState)
	if err != nil {
		return repack.Matrix{}, err
	}
	var q quantState
	if err := json.Unmarshal(raw, &q); err != nil {
		return repack.Matrix{}, fmt.Errorf("tensor %s: %w", container.Name(state.Name), err)
	}
	if len(q.Shape) != 2 || q.Shape[0] != m.rows || q.Shape[1] != m.cols {
		return repack.Matrix{}, fmt.Errorf("tensor %s says that the shape is %v, the configuration asks for %v", container.Name(state.Name), q.Shape, []int{m.rows, m.cols})
	}
	absmax, err := m.need(".weight.absmax")
	if err != nil {
		return repack.Matrix{}, err
	}
	x.AbsMax, x.Block = absmax[0], q.Block
	if absmax[0].DType == "U8" {
		nested, err := m.need(".weight.nested_absmax", ".weight.nested_quant_map")
		if err != nil {
			return repack.Matrix{}, err
		}
		x.Nested, x.Map, x.NestedBlock, x.Offset = nested[0], nested[1], q.NestedBlock, float32(q.NestedOffset)
	}
	return m.src.view.AddNF4(x, m.rows, m.cols)
}

// bytes reads a small tensor of up to limit bytes that describes others.
func (s *source) bytes(t *checkpoint.Tensor, limit int64) ([]byte, error) {
	if t.Bytes < 1 || t.Bytes > limit {
		return nil, fmt.Errorf("tensor %s has %d bytes, expected 1 to %d", container.Name(t.Name), t.Bytes, limit)
	}
	r := container.NewReader(s.cat.Files[t.File].File, t.Offset, t.Offset+t.Bytes)
	return r.Append(nil, int(t.Bytes))
}
