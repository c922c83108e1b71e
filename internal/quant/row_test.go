package quant

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestRowErrors(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no decoder":    {DecodeRow(Q8_K, make([]float32, 256), make([]byte, 292)), "no decoder for Q8_K"},
		"unknown":       {DecodeRow(77, nil, nil), "no decoder for type 77"},
		"beyond":        {DecodeRow(NVFP4+99, nil, nil), "no decoder"},
		"part of block": {DecodeRow(Q4_0, make([]float32, 31), make([]byte, 18)), "31 values is not whole blocks of 32"},
		"short":         {DecodeRow(Q4_0, make([]float32, 64), make([]byte, 35)), "take 36 bytes, not 35"},
		"long":          {DecodeRow(F16, make([]float32, 1), make([]byte, 4)), "take 2 bytes, not 4"},
		"no encoder":    {EncodeRow(I32, nil, nil), "no encoder for I32"},
		"encode short":  {EncodeRow(Q8_0, make([]byte, 33), make([]float32, 32)), "take 34 bytes, not 33"},
		"not finite":    {EncodeRow(Q4_K, make([]byte, 144), append(make([]float32, 255), inf)), "value 255 is +Inf"},
		"nan":           {EncodeRow(Q4_0, make([]byte, 18), append(make([]float32, 31), float32(math.NaN()))), "value 31 is NaN"},
		"too large":     {EncodeRow(Q4_0, make([]byte, 18), append([]float32{-70000}, make([]float32, 31)...)), "value 0 is -70000"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, c.err, c.want)
		}
	}
	if err := DecodeRow(Q4_0, nil, nil); err != nil {
		t.Errorf("an empty row: %v", err)
	}
}

// TestEveryType checks for all types that rows decode without allocation, that encoding fills every
// byte and depends on its input alone, and that zeros stay zeros.
func TestEveryType(t *testing.T) {
	for typ := range infos {
		if !CanDecode(typ) {
			continue
		}
		t.Run(typ.String(), func(t *testing.T) {
			if !CanEncode(typ) {
				t.Fatal("no encoder")
			}
			x := make([]float32, 512)
			for i := range x {
				x[i] = float32((i*37)%101-50) / 64
			}
			a := bytes.Repeat([]byte{0x00}, typ.RowBytes(len(x)))
			b := bytes.Repeat([]byte{0xff}, typ.RowBytes(len(x)))
			encode(t, typ, a, x)
			encode(t, typ, b, x)
			if !bytes.Equal(a, b) {
				t.Error("encoding depends on what was in the buffer")
			}
			y := make([]float32, len(x))
			if n := testing.AllocsPerRun(10, func() { _ = DecodeRow(typ, y, a) }); n != 0 {
				t.Errorf("decoding allocates %v times", n)
			}
			encode(t, typ, a, make([]float32, len(x)))
			if err := DecodeRow(typ, y, a); err != nil {
				t.Fatal(err)
			}
			for i, v := range y {
				if v != 0 {
					t.Fatalf("zero %d becomes %v", i, v)
				}
			}
		})
	}
}

// TestEncodeExtremes encodes rows whose range is hard: what comes back is finite and no further
// from the values than 1.2 times the largest.
func TestEncodeExtremes(t *testing.T) {
	rows := map[string]func(i int) float32{
		"largest":   func(i int) float32 { return maxHalf * float32(1-2*(i%2)) },
		"positive":  func(i int) float32 { return 1000 + float32(i) },
		"negative":  func(i int) float32 { return -1000 - float32(i%7) },
		"equal":     func(i int) float32 { return -0.375 },
		"tiny":      func(i int) float32 { return float32(i) * 1e-44 },
		"one":       func(i int) float32 { return float32(max(0, 1-i)) * 3 },
		"wide":      func(i int) float32 { return float32(math.Ldexp(1, i%30-16)) },
		"halves":    func(i int) float32 { return float32(i%9-4) / 2 },
		"alternate": func(i int) float32 { return float32(1-2*(i%2)) * 1e-7 },
	}
	for name, row := range rows {
		x := make([]float32, 512)
		var width float64
		for i := range x {
			x[i] = row(i)
			width = max(width, math.Abs(float64(x[i])))
		}
		for typ := range infos {
			if !CanEncode(typ) {
				continue
			}
			raw, y := make([]byte, typ.RowBytes(len(x))), make([]float32, len(x))
			encode(t, typ, raw, x)
			if err := DecodeRow(typ, y, raw); err != nil {
				t.Fatal(err)
			}
			for i := range y {
				// A half of a scale may be a subnormal, or underflow.
				if e := math.Abs(float64(y[i]) - float64(x[i])); !(e <= 1.2*width+1e-6) {
					t.Errorf("%s, %v: %v becomes %v", name, typ, x[i], y[i])
					break
				}
			}
		}
	}
}

func encode(t *testing.T, typ Type, dst []byte, src []float32) {
	t.Helper()
	if err := EncodeRow(typ, dst, src); err != nil {
		t.Fatal(err)
	}
}
