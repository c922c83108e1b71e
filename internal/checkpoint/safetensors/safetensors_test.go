package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// file makes a file of a header as it is and so many bytes of data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func open(b []byte) vfs.File { return vfs.Bytes("test.safetensors", b) }

func TestRoundTrip(t *testing.T) {
	want := []safetensors.Array{
		safetensors.Float32s("logits", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6}),
		safetensors.Int64s("greedy", []int{2}, []int64{-7, 7}),
		{Name: "nothing", DType: "F16", Shape: []int{0, 4}, Data: []byte{}},
		{Name: "a \"quoted\" <ünï> name", DType: "U8", Shape: []int{}, Data: []byte{9}},
		{Name: "four bits", DType: "F4", Shape: []int{3, 2}, Data: []byte{1, 2, 3}},
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := safetensors.ReadAll(open(b.Bytes()), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		if d := cmp.Diff(w, got[w.Name], cmp.Transformer("bytes", func(b []byte) string { return string(b) })); d != "" {
			t.Error(d)
		}
	}
	f, err := got["logits"].Float32s()
	if err != nil || len(f) != 6 || f[5] != 6 {
		t.Errorf("logits %v (%v)", f, err)
	}
	n, err := got["greedy"].Ints()
	if err != nil || cmp.Diff([]int64{-7, 7}, n) != "" {
		t.Errorf("greedy %v (%v)", n, err)
	}
	if _, err := got["greedy"].Float32s(); err == nil {
		t.Error("integers are floats")
	}
	if _, err := safetensors.ReadAll(open(b.Bytes()), 10); err == nil {
		t.Error("the limit is not kept")
	}
}

func TestHeader(t *testing.T) {
	h, err := safetensors.Read(open(file(` {"__metadata__":{"format":"pt","x":"\u00e9\ud83d\ude00\n"},
		"b":{"shape":[2,2],"dtype":"BF16","data_offsets":[4,12],"extra":{"a":[1,-2.5e3,null,true,"s",{}]}},
		"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}   `, 12)))
	if err != nil {
		t.Fatal(err)
	}
	at := h.DataStart
	want := []container.Tensor{
		{Name: "b", Type: quant.BF16, DType: "BF16", Shape: []int{2, 2}, Offset: at + 4, Bytes: 8},
		{Name: "a", Type: container.NoType, DType: "F8_E4M3", Shape: []int{4}, Offset: at, Bytes: 4},
	}
	if d := cmp.Diff(want, h.Tensors); d != "" {
		t.Error(d)
	}
	if s, ok := h.Meta.String("x"); !ok || s != "é😀\n" {
		t.Errorf("x is %q", s)
	}
}

// TestLargeHeader has a header of many read buffers, so that names and numbers lie across borders.
func TestLargeHeader(t *testing.T) {
	var b bytes.Buffer
	w := safetensors.NewWriter(&b)
	name := func(i int) string { return strings.Repeat("é", i%40) + fmt.Sprint(i) }
	for i := range 6000 {
		if err := w.Add(name(i), "U8", i%3, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 6000)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := safetensors.Read(open(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if h.DataStart < 6*64<<10 || len(h.Tensors) != 6000 {
		t.Fatalf("a header of %d bytes with %d tensors", h.DataStart, len(h.Tensors))
	}
	for i, x := range h.Tensors {
		if x.Name != name(i) || x.Shape[0] != i%3 || x.Bytes != int64(i%3) {
			t.Fatalf("tensor %d is %+v", i, x)
		}
	}
}

func TestRefused(t *testing.T) {
	one := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"w":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "only 0 bytes"},
		{"long header", append(binary.LittleEndian.AppendUint64(nil, 1<<62), "{}"...), "pass the end"},
		{"no header", file("", 3), "empty"},
		{"no object", file("[]", 0), `'[' where '{'`},
		{"cut", file(`{"w":{"dtype":"F3`, 0), "ends too early"},
		{"after the end", file(`{} x`, 0), `'x' after its end`},
		{"trailing comma", file(`{"__metadata__":{},}`, 0), `'}' where '"'`},
		{"unknown dtype", file(one(`"F99"`, "[1]", "[0,4]"), 4), `tensor "w": its dtype, "F99"`},
		{"dtype type", file(one(`3`, "[1]", "[0,4]"), 4), `tensor "w"`},
		{"negative", file(one(`"F32"`, "[-1]", "[0,4]"), 4), `tensor "w"`},
		{"fraction", file(one(`"F32"`, "[1.0]", "[0,4]"), 4), `"1.0" is not a natural number`},
		{"exponent", file(one(`"F32"`, "[1e0]", "[0,4]"), 4), `"1e0" is not a natural number`},
		{"leading zero", file(one(`"F32"`, "[01]", "[0,4]"), 4), `"01" is not a natural number`},
		{"2^64", file(one(`"F32"`, "[18446744073709551616]", "[0,4]"), 4), "below 2^64"},
		{"product", file(one(`"F32"`, "[4294967296,4294967296]", "[0,4]"), 4), "product"},
		{"bits", file(one(`"F32"`, "[4611686018427387904]", "[0,4]"), 4), `tensor "w"`},
		{"half a byte", file(one(`"F4"`, "[3]", "[0,1]"), 1), "no whole number of bytes"},
		{"dims", file(one(`"F32"`, "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), "more than 16"},
		{"one offset", file(one(`"F32"`, "[1]", "[0]"), 4), "not begin and end"},
		{"backwards", file(one(`"F32"`, "[1]", "[4,0]"), 4), "not begin and end"},
		{"beyond", file(one(`"F32"`, "[2]", "[0,8]"), 4), "passes the end"},
		{"wrong size", file(one(`"F32"`, "[2]", "[0,4]"), 4), "takes 8 bytes"},
		{"missing", file(`{"w":{"dtype":"F32","shape":[1]}}`, 4), `tensor "w": data_offsets is missing`},
		{"member twice", file(`{"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4), "dtype is there twice"},
		{"tensor twice", file(`{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), `tensor "w": it is there twice`},
		{"key twice", file(`{"__metadata__":{"a":"","a":""}}`, 0), `key "a" is there twice`},
		{"metadata type", file(`{"__metadata__":{"a":1}}`, 0), `'1' where '"'`},
		{"overlap", file(`{"v":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"w":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), `tensor "w": it overlaps tensor "v"`},
		{"hole", file(`{"v":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3), "belong to no tensor"},
		{"tail", file(`{"v":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 3), "last 2 bytes belong to no tensor"},
		{"surrogate", file(`{"\ud800":{}}`, 0), "surrogate"},
		{"utf-8", file("{\"\xff\":{}}", 0), "UTF-8"},
		{"control", file("{\"\n\":{}}", 0), "control"},
		{"escape", file(`{"\x":{}}`, 0), "escape"},
		{"deep", file(`{"w":{"x":`+strings.Repeat("[", 5000), 0), "nests too deep"},
		{"long name", file(`{"`+strings.Repeat("x", 70_000)+`":{}}`, 0), "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := safetensors.Read(open(c.file))
			var format *container.Error
			if !errors.As(err, &format) {
				t.Fatalf("%v is not a format error", err)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q does not say %q in one line", err, c.want)
			}
		})
	}
}

func TestAllocations(t *testing.T) {
	tensors := `{`
	for i := range 400 {
		tensors += fmt.Sprintf(`"%d":{"dtype":"U8","shape":[0,0],"data_offsets":[0,0]},`, i)
	}
	for name, header := range map[string]string{
		"tensors": tensors + `"w":{}}`,
		"string":  `{"w":{"x":"` + strings.Repeat("y", 30_000) + `"}}`,
		"meta":    `{"__metadata__":{` + strings.Repeat(`"":"",`, 5000) + `"a":""}}`,
	} {
		data := file(header, 0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := safetensors.Read(open(data)); err == nil {
			t.Errorf("%s: accepted", name)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 20*uint64(len(data))+128<<10 {
			t.Errorf("%s: %d bytes were allocated for a file of %d", name, n, len(data))
		}
	}
}

// TestSparseHeader has 10 MB of white space: room is made for what is there, not for what would fit.
func TestSparseHeader(t *testing.T) {
	data := file("{"+strings.Repeat(" ", 10_000_000)+"}", 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := safetensors.Read(open(data))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err != nil || n > 1<<20 {
		t.Errorf("%d bytes were allocated (%v)", n, err)
	}
}

func TestWriterRefuses(t *testing.T) {
	w := safetensors.NewWriter(&bytes.Buffer{})
	for name, err := range map[string]error{
		"dtype": w.Add("x", "F99", 1),
		"shape": w.Add("x", "F32", -1),
		"large": w.Add("x", "F32", 1<<40, 1<<40),
		"meta":  w.Add("__metadata__", "F32", 1),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if err := w.Add("x", "F32", 1); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil {
		t.Error("closed without data")
	}
	if err := safetensors.Write(&bytes.Buffer{}, []safetensors.Array{{Name: "x", DType: "F32", Shape: []int{2}, Data: make([]byte, 4)}}); err == nil {
		t.Error("data that does not fit the shape was accepted")
	}
}

func FuzzSafetensors(f *testing.F) {
	var b bytes.Buffer
	if err := safetensors.Write(&b, []safetensors.Array{safetensors.Float32s("logits", []int{1, 2}, []float32{1, 2})}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(file(`{"__metadata__":{"a":"\u00e9\ud83d\ude00"},"w":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4],"x":[null,{"y":-1.5}]}}`, 4))
	f.Add(file(`{"v":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"F4","shape":[2],"data_offsets":[1,2]}}`, 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := safetensors.Read(open(data))
		if err != nil {
			var format *container.Error
			if !errors.As(err, &format) {
				t.Fatalf("%v is not a format error", err)
			}
			return
		}
		sum := h.DataStart
		for i := range h.Tensors {
			x := &h.Tensors[i]
			if x.Offset < h.DataStart || x.Bytes < 0 || x.Offset+x.Bytes > int64(len(data)) {
				t.Fatalf("%+v is not within the data", x)
			}
			sum += x.Bytes
		}
		if sum != int64(len(data)) {
			t.Fatalf("header and tensors have %d of %d bytes", sum, len(data))
		}
	})
}
