package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// small is a file with a key of every writable type and three tensors.
func small(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gguf.NewWriter(&b)
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"general.architecture", "test"}, {"u8", uint8(255)}, {"i8", int8(-1)}, {"u16", uint16(65535)}, {"i16", int16(-2)},
		{"u32", uint32(7)}, {"i32", int32(-3)}, {"u64", uint64(math.MaxUint64)}, {"i64", int64(math.MinInt64)},
		{"f32", float32(0.5)}, {"f64", 0.25}, {"yes", true},
		{"tokens", []string{"a", "", "\xff\xfe"}}, {"scores", []float32{1, -1}}, {"kinds", []int32{-5, 5}}, {"bytes", []byte{1, 2}},
		{"flags", []bool{true, false}},
	} {
		if err := w.Set(kv.key, kv.value); err != nil {
			t.Fatal(err)
		}
	}
	add := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	add(w.Add("a", quant.F32, 3, 5))
	add(w.Add("b", quant.Q8_0, 2, 64))
	add(w.Add("c", quant.F16, 7))
	add(w.Begin())
	if _, err := w.Write(make([]byte, 3*5*4+2*68+14)); err != nil {
		t.Fatal(err)
	}
	add(w.Close())
	return b.Bytes()
}

func read(data []byte) (*container.Header, error) { return gguf.Read(vfs.Bytes("test.gguf", data)) }

func TestRoundTrip(t *testing.T) {
	h, err := read(small(t))
	if err != nil {
		t.Fatal(err)
	}
	if h.Version != 3 || h.Alignment != 32 || h.DataStart%32 != 0 {
		t.Errorf("version %d, alignment %d, data at %d", h.Version, h.Alignment, h.DataStart)
	}
	at := h.DataStart
	want := []container.Tensor{
		{Name: "a", Type: quant.F32, DType: "F32", Shape: []int{3, 5}, Offset: at, Bytes: 60},
		{Name: "b", Type: quant.Q8_0, DType: "Q8_0", Shape: []int{2, 64}, Offset: at + 64, Bytes: 136},
		{Name: "c", Type: quant.F16, DType: "F16", Shape: []int{7}, Offset: at + 64 + 160, Bytes: 14},
	}
	if d := cmp.Diff(want, h.Tensors); d != "" {
		t.Error(d)
	}
	checkMeta(t, h.Meta)
}

func checkMeta(t *testing.T, m *container.Table) {
	t.Helper()
	for key, want := range map[string]int64{"u8": 255, "i8": -1, "u16": 65535, "i16": -2, "u32": 7, "i32": -3, "i64": math.MinInt64} {
		if got, ok := m.Int(key); !ok || got != want {
			t.Errorf("%s is %d (%v)", key, got, ok)
		}
	}
	if _, ok := m.Int("u64"); ok {
		t.Error("2^64-1 fits an int64")
	}
	if u, ok := m.Lookup("u64").Uint(); !ok || u != math.MaxUint64 {
		t.Errorf("u64 is %d", u)
	}
	f, ok1 := m.Float("f32")
	g, ok2 := m.Float("i16")
	yes, ok3 := m.Bool("yes")
	if f != 0.5 || g != -2 || !yes || !ok1 || !ok2 || !ok3 {
		t.Errorf("f32 %v, i16 as float %v, yes %v", f, g, yes)
	}
	var tokens []string
	for b, err := range m.Strings("tokens") {
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, string(b))
	}
	if d := cmp.Diff([]string{"a", "", "\xff\xfe"}, tokens); d != "" {
		t.Error(d)
	}
	var sum float64
	for v, err := range m.Floats("scores") {
		if err != nil {
			t.Fatal(err)
		}
		sum = 2*sum + v
	}
	if n, ok := m.Count("kinds"); sum != 1 || n != 2 || !ok {
		t.Errorf("scores %v, %d kinds", sum, n)
	}
	for range m.Strings("absent") {
		t.Error("an absent key has elements")
	}
	for _, err := range m.Ints("tokens") {
		if err == nil {
			t.Error("strings are integers")
		}
	}
	for _, err := range m.Ints("u8") {
		if err == nil {
			t.Error("a scalar is a list")
		}
	}
}

// patch replaces bytes after the only occurrence of mark.
func patch(t *testing.T, data []byte, mark string, skip int, with ...byte) []byte {
	t.Helper()
	at := bytes.Index(data, []byte(mark))
	if at < 0 || bytes.Count(data, []byte(mark)) != 1 {
		t.Fatalf("%q is not there once", mark)
	}
	out := bytes.Clone(data)
	copy(out[at+len(mark)+skip:], with)
	return out
}

func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// TestRefused patches a sound file in one place each.
func TestRefused(t *testing.T) {
	whole := small(t)
	all := bytes.Repeat([]byte{255}, 8)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not a GGUF file"},
		{"other", []byte("PK\x03\x04 and more of it than eight bytes"), "not a GGUF file"},
		{"ggml", append([]byte("tjgg"), whole[4:]...), "before GGUF"},
		{"version 1", patch(t, whole, "GGUF", 0, 1), "version 1"},
		{"version 4", patch(t, whole, "GGUF", 0, 4), "version 4"},
		{"big-endian", patch(t, whole, "GGUF", 0, 0, 0, 0, 3), "big-endian"},
		{"tensor count", patch(t, whole, "GGUF", 4, all...), "do not fit"},
		{"one key too many", patch(t, whole, "GGUF", 12, 18), "tensor 0"},
		{"key length", patch(t, whole, "test", 0, all...), `key 1`},
		{"value type", patch(t, whole, "yes", 0, 13), `key "yes": value type 13`},
		{"bool", patch(t, whole, "yes", 4, 2), `key "yes": a bool is 2`},
		{"element type", patch(t, whole, "kinds", 4, 99), `key "kinds"`},
		{"list length", patch(t, whole, "kinds", 8, u64(1<<61)...), `key "kinds"`},
		{"string in list", patch(t, whole, "tokens", 16, u64(1<<62)...), `key "tokens"`},
		{"bool in list", patch(t, whole, "flags", 16, 7), `key "flags"`},
		{"dims", patch(t, whole, "\x01\x00\x00\x00\x00\x00\x00\x00b", 0, 5), `tensor "b": 5 dimensions`},
		{"block", patch(t, whole, "\x01\x00\x00\x00\x00\x00\x00\x00b", 4, 65), `tensor "b": rows of 65`},
		{"dimension", patch(t, whole, "\x01\x00\x00\x00\x00\x00\x00\x00b", 4, all...), `tensor "b": dimension 0`},
		{"product", patch(t, whole, "\x01\x00\x00\x00\x00\x00\x00\x00b", 12, u64(1<<60)...), `tensor "b"`},
		{"type", patch(t, whole, "\x01\x00\x00\x00\x00\x00\x00\x00b", 20, 4), `tensor "b": its type, 4,`},
		{"offset", patch(t, whole, "\x01\x00\x00\x00\x00\x00\x00\x00b", 24, all...), `tensor "b": its offset`},
		{"unaligned", patch(t, whole, "\x01\x00\x00\x00\x00\x00\x00\x00b", 24, 65), `tensor "b": its offset, 65`},
		{"overlap", patch(t, whole, "\x01\x00\x00\x00\x00\x00\x00\x00b", 24, 32), `tensor "b": it overlaps tensor "a"`},
		{"same name", patch(t, whole, "\x01\x00\x00\x00\x00\x00\x00\x00b", -1, 'a'), `tensor "a": it is there twice`},
		{"same key", patch(t, whole, "i16", -3, 'u'), `key "u16": it is there twice`},
		{"cut data", whole[:len(whole)-20], `tensor "c"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.data)
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

// TestCutAnywhere cuts a sound file at every byte of its header.
func TestCutAnywhere(t *testing.T) {
	whole := small(t)
	h, err := read(whole)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int(h.DataStart) {
		var format *container.Error
		if _, err := read(whole[:n]); !errors.As(err, &format) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

// TestAllocations bounds what hostile files make us allocate.
func TestAllocations(t *testing.T) {
	head := append([]byte("GGUF\x03\x00\x00\x00"), append(u64(0), u64(2000)...)...)
	keys := bytes.Clone(head)
	for i := range 2000 { // as many keys as fit
		keys = append(append(keys, u64(2)...), byte(i), byte(i>>8), 0, 0, 0, 0, 1)
	}
	nested := bytes.Clone(head)
	binary.LittleEndian.PutUint64(nested[16:], 1)
	nested = append(append(nested, u64(1)...), 'x', 9, 0, 0, 0)
	for range 2000 {
		nested = append(append(nested, 9, 0, 0, 0), u64(1)...)
	}
	long := append(append(bytes.Clone(nested[:25+8]), 8, 0, 0, 0), u64(29_000)...)
	long = append(long, make([]byte, 29_500)...)
	binary.LittleEndian.PutUint32(nested[33:], 9)
	for name, data := range map[string][]byte{"keys": keys, "nested": nested, "string": long} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := read(data)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 10*uint64(len(data))+128<<10 {
				t.Errorf("%d bytes were allocated for a file of %d (%v)", n, len(data), err)
			}
		})
	}
}

// TestKeepsNoMore: keys and strings beyond what a table keeps are refused. A string is never silently
// empty; one too long to keep is none.
func TestKeepsNoMore(t *testing.T) {
	for _, c := range []struct {
		name, key, value string
		n                int
		refused          bool
	}{
		{"long strings", "", strings.Repeat("x", 1<<20), 9, true},
		{"long keys", strings.Repeat("x", 60_000), "", 150, true},
		{"just enough", "", strings.Repeat("x", 1<<20-1000), 8, false},
		{"strings not kept", "", strings.Repeat("x", 1<<20+1), 9, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			w := gguf.NewWriter(&b)
			for i := range c.n {
				if err := w.Set(fmt.Sprint(i, c.key), c.value); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(w.Set("general.architecture", "llama"), w.Close()); err != nil {
				t.Fatal(err)
			}
			h, err := read(b.Bytes())
			var format *container.Error
			if c.refused {
				if !errors.As(err, &format) || !strings.Contains(err.Error(), "more than 8388608 bytes") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if arch, ok := h.Meta.String("general.architecture"); !ok || arch != "llama" {
				t.Errorf("the architecture is %q, %v", arch, ok)
			}
			if s, ok := h.Meta.String("0"); ok != (s == c.value) {
				t.Errorf("a string of %d bytes, %v", len(s), ok)
			}
		})
	}
}

// TestListReadError fails the read of a list, after the header was read.
func TestListReadError(t *testing.T) {
	f := vfs.Fault(vfs.OS(), vfs.Plan{FailRead: 2}).Wrap(vfs.Bytes("test.gguf", small(t)))
	h, err := gguf.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, err := range h.Meta.Strings("tokens") {
		steps++
		var format *container.Error
		if !errors.Is(err, syscall.EIO) || errors.As(err, &format) || !strings.Contains(err.Error(), "tokens") {
			t.Errorf("%v", err)
		}
	}
	if steps != 1 {
		t.Errorf("%d steps", steps)
	}
}

func TestWriterRefuses(t *testing.T) {
	w := gguf.NewWriter(&bytes.Buffer{})
	for name, err := range map[string]error{
		"value":     w.Set("x", struct{}{}),
		"alignment": w.Set("general.alignment", uint32(48)),
		"type":      w.Add("x", quant.Type(77), 1),
		"block":     w.Add("x", quant.Q4_0, 31),
		"shape":     w.Add("x", quant.F32, 1, 1, 1, 1, 1),
		"name":      w.Add(strings.Repeat("x", 65), quant.F32, 1),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if err := w.Add("t", quant.F32, 2); err != nil {
		t.Fatal(err)
	}
	if w.Add("t", quant.F32, 2) == nil {
		t.Error("a name was accepted twice")
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "0 of its 8 bytes") {
		t.Errorf("closed without data: %v", err)
	}
	if _, err := w.Write(make([]byte, 9)); err == nil {
		t.Error("more data than tensors was accepted")
	}
}

func FuzzGGUF(f *testing.F) {
	f.Add(small(f))
	files, err := filepath.Glob("testdata/*.gguf")
	if err != nil || len(files) < 3 {
		f.Fatalf("%d files (%v)", len(files), err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := read(data)
		if err != nil {
			var format *container.Error
			if !errors.As(err, &format) {
				t.Fatalf("%v is not a format error", err)
			}
			return
		}
		checkSound(t, h, int64(len(data)))
	})
}

// checkSound checks what a reader promises of every file that it accepts.
func checkSound(t *testing.T, h *container.Header, size int64) {
	for i := range h.Tensors {
		x := &h.Tensors[i]
		if x.Offset < 0 || x.Bytes < 0 || x.Offset+x.Bytes > size || slices.Min(append(x.Shape, 0)) < 0 {
			t.Fatalf("%+v is not within %d bytes", x, size)
		}
	}
	for _, e := range h.Meta.Entries() {
		if e.Kind != container.List {
			continue
		}
		n := int64(0)
		for _, err := range h.Meta.Elements(e.Array) {
			if err != nil {
				t.Fatalf("key %q: %v", e.Key, err)
			}
			n++
		}
		if n != e.Array.Count {
			t.Fatalf("key %q has %d elements, not %d", e.Key, n, e.Array.Count)
		}
	}
}
