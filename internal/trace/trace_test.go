package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spillway/spillway/internal/testutil"
)

// open loads a trace of a file.
func open(t testing.TB, path string) *Trace {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Load(src, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

const small = "testdata/storyteller.jsonl.gz"

// whole is the trace of a trained model.
func whole(t testing.TB) *Trace {
	return open(t, testutil.Shared(t, "models/storyteller-moe/routing.jsonl.gz"))
}

// copied writes what a source gives as a file of ours.
func copied(t testing.TB, src Source) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, src.Header())
	if err != nil {
		t.Fatal(err)
	}
	step := -1
	for {
		r, err := src.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Step != step {
			step = r.Step
			err = w.Step()
		}
		ids := make([]int32, len(r.Experts))
		for i, e := range r.Experts {
			ids[i] = int32(e)
		}
		if err = errors.Join(err, w.Visit(r.Layer, r.Decode, ids)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// records reads everything.
func records(src Source) (out []Record, err error) {
	for {
		r, err := src.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		r.Experts = slices.Clone(r.Experts)
		out = append(out, r)
	}
}

func TestImport(t *testing.T) {
	f, err := os.Open(small)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	want := Header{Format: formatName, Version: 1, Layers: 4, Experts: 32, Used: 4}
	if d := cmp.Diff(want, src.Header()); d != "" {
		t.Error(d)
	}
	first, err := src.Next()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]uint16{26, 23, 31, 15, 23, 31, 1, 13}, first.Experts[:8]); d != "" || first.Prefill != 23 || first.Decode != 0 {
		t.Errorf("the prompt has %d and %d rows: %s", first.Decode, first.Prefill, d)
	}
	if _, err = Open(f); err == nil {
		t.Fatal("a file is read from its middle")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if src, err = Open(f); err != nil {
		t.Fatal(err)
	}
	all, err := records(src)
	if err != nil {
		t.Fatal(err)
	}
	rows, steps := 0, map[int]bool{}
	for _, r := range all {
		steps[r.Step] = true
		if r.Layer == 0 {
			rows += r.Decode + r.Prefill
		}
	}
	if len(all) != 4*len(steps) || len(steps) != 598 || rows != 663 {
		t.Errorf("%d records, %d steps, %d rows", len(all), len(steps), rows)
	}
}

// What is written is read back, and both formats replay alike.
func TestBothFormats(t *testing.T) {
	f, err := os.Open(small)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	ours := copied(t, src)
	back, err := Open(bytes.NewReader(ours))
	if err != nil {
		t.Fatal(err)
	}
	native, err := Load(back, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := Setting{Policies: []string{"lru", "adaptive"}, Slots: []int{16, 64}, Threads: 1}
	a, errA := native.Replay(context.Background(), s)
	b, errB := open(t, small).Replay(context.Background(), s)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if d := cmp.Diff(a, b); d != "" {
		t.Error(d)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := Header{
			Format: formatName, Version: version, Layers: rapid.IntRange(1, 4).Draw(rt, "layers"),
			Experts: rapid.SampledFrom([]int{1, 5, 256, 257, 1000}).Draw(rt, "experts"), Model: Model{Name: rapid.String().Draw(rt, "name")},
		}
		h.Model.Name = strings.ToValidUTF8(h.Model.Name, "")
		h.Used = rapid.IntRange(1, min(h.Experts, 6)).Draw(rt, "used")
		var file bytes.Buffer
		w, err := NewWriter(&file, h)
		if err != nil {
			rt.Fatal(err)
		}
		var want []Record
		for step := range rapid.IntRange(0, 5).Draw(rt, "steps") {
			if err := w.Step(); err != nil {
				rt.Fatal(err)
			}
			for layer := range h.Layers {
				if rapid.Bool().Draw(rt, "skip") {
					continue
				}
				r := drawRecord(rt, h)
				r.Step, r.Layer = step, layer
				ids := make([]int32, len(r.Experts))
				for i, e := range r.Experts {
					ids[i] = int32(e)
				}
				if err := w.Visit(layer, r.Decode, ids); err != nil {
					rt.Fatal(err)
				}
				want = append(want, r)
			}
		}
		if err := w.Close(); err != nil {
			rt.Fatal(err)
		}
		src, err := Open(bytes.NewReader(file.Bytes()))
		if err != nil {
			rt.Fatal(err)
		}
		got, err := records(src)
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(h, src.Header()); d != "" {
			rt.Fatal(d)
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatal(d)
		}
	})
}

func drawRecord(rt *rapid.T, h Header) Record {
	r := Record{Decode: rapid.IntRange(0, 3).Draw(rt, "decode"), Prefill: rapid.IntRange(0, 3).Draw(rt, "prefill")}
	if r.Decode+r.Prefill == 0 {
		r.Decode = 1
	}
	for range r.Decode + r.Prefill {
		r.Experts = append(r.Experts, rapid.SliceOfNDistinct(rapid.Uint16Range(0, uint16(h.Experts-1)), h.Used, h.Used, rapid.ID).Draw(rt, "row")...)
	}
	return r
}

// tiny is a trace of two steps, with what its records are.
func tiny(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{Layers: 2, Experts: 8, Used: 2, ExpertBytes: []int64{100, 200}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		w.Step(), w.Visit(0, 0, []int32{1, 2, 2, 3}), w.Visit(1, 0, []int32{7, 6, 6, 7}),
		w.Step(), w.Visit(0, 1, []int32{2, 1}), w.Visit(1, 1, []int32{0, 7}), w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func load(data []byte) (*Trace, error) {
	src, err := Open(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return Load(src, nil)
}

// A trace that was cut or changed anywhere is refused; the checksum finds what the rest does not.
func TestDamage(t *testing.T) {
	good := tiny(t)
	if _, err := load(good); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, data []byte) {
		var damaged *FormatError
		if _, err := load(data); !errors.As(err, &damaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range good {
		refused(fmt.Sprintf("%d bytes", n), good[:n])
	}
	for i := range good {
		for _, bit := range []byte{1, 0x80} {
			bad := slices.Clone(good)
			bad[i] ^= bit
			refused(fmt.Sprintf("byte %d changed by %#x", i, bit), bad)
		}
	}
	refused("more behind", append(slices.Clone(good), 0))
}

// sealed puts counts and a checksum behind records.
func sealed(header string, records []byte, steps, visits uint64) []byte {
	b := append([]byte(header+"\n"), records...)
	b = append(b, recordEnd)
	b = binary.AppendUvarint(binary.AppendUvarint(b, steps), visits)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// Every rule of the format has its message.
func TestHostile(t *testing.T) {
	header := func(layers, experts, used string) string {
		return `{"format":"spillway-trace","version":1,"model":{},"layers":` + layers + `,"experts":` + experts + `,"used":` + used + `}`
	}
	ours := header("2", "8", "2")
	huge := []byte{1, 2, 0, 0xff, 0xff, 3, 0}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "ends in the middle"},
		{"no trace", []byte("GGUF\x03\x00\x00\x00\n"), "no trace of spillway"},
		{"other JSON of ours", []byte(`["spillway-trace"]` + "\n"), "no trace of spillway"},
		{"endless line", append([]byte(`{"format":"spillway-trace","x":"`), bytes.Repeat([]byte("x"), 1<<20)...), "no trace of spillway"},
		{"version", sealed(strings.Replace(ours, `"version":1`, `"version":2`, 1), nil, 0, 0), "version 2, this program reads 1"},
		{"no layers", sealed(header("0", "8", "2"), nil, 0, 0), "0 layers with 8 experts"},
		{"too many", sealed(header("1000000", "60000", "2"), nil, 0, 0), "1000000 layers with 60000 experts"},
		{"product beyond 64 bits", sealed(header("9223372036854775807", "65536", "2"), nil, 0, 0), "9223372036854775807 layers"},
		{"more used than there are", sealed(header("2", "8", "9"), nil, 0, 0), "9 of 8 experts"},
		{"sizes", sealed(strings.Replace(ours, `"model"`, `"expert_bytes":[1],"model"`, 1), nil, 0, 0), "sizes of experts for 1 layers, there are 2"},
		{"size", sealed(strings.Replace(ours, `"model"`, `"expert_bytes":[1,-4],"model"`, 1), nil, 0, 0), "an expert of -4 bytes"},
		{"kind", sealed(ours, []byte{9}, 0, 0), "no kind of record 9"},
		{"before a step", sealed(ours, []byte{2, 0, 1, 0, 1, 2}, 0, 1), "before the first step"},
		{"layer", sealed(ours, []byte{1, 2, 2, 1, 0, 1, 2}, 1, 1), "layer 2 of 2"},
		{"layers fall", sealed(ours, []byte{1, 2, 1, 1, 0, 1, 2, 2, 0, 1, 0, 1, 2}, 1, 2), "layer 0 of 2 follows layer 1"},
		{"no rows", sealed(ours, []byte{1, 2, 0, 0, 0}, 1, 1), "a layer with 0 and 0 rows"},
		{"too many rows", sealed(ours, []byte{1, 2, 0, 0xff, 0xff, 0x7f, 0}, 1, 1), "a layer with 2097151 and 0 rows"},
		{"rows that are not there", sealed(ours, huge, 1, 1)[:len(ours)+1+len(huge)], "ends in the middle"},
		{"number", sealed(ours, append([]byte{1, 2}, bytes.Repeat([]byte{0xff}, 12)...), 1, 1), "number that is too large"},
		{"expert", sealed(ours, []byte{1, 2, 0, 1, 0, 1, 8}, 1, 1), "expert 8 of 8"},
		{"twice", sealed(ours, []byte{1, 2, 0, 1, 0, 3, 3}, 1, 1), "expert 3 twice"},
		{"steps", sealed(ours, []byte{1, 2, 0, 1, 0, 1, 2}, 2, 1), "checksum"},
		{"visits", sealed(ours, []byte{1, 2, 0, 1, 0, 1, 2}, 1, 2), "checksum"},
	} {
		_, err := load(c.data)
		var damaged *FormatError
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := load(sealed(ours, []byte{1, 2, 0, 1, 0, 1, 2}, 1, 1)); err != nil {
		t.Error(err) // so that what is refused above is refused for its reason
	}
}

func TestHostileLines(t *testing.T) {
	line := func(phase, experts string) string {
		return `{"conversation":0,"phase":"` + phase + `","experts":` + experts + `}` + "\n"
	}
	good := line("prefill", "[[1,2]]") + line("decode", "[[0,2]]")
	for _, c := range []struct{ name, data, want string }{
		{"nothing", "{", "unexpected end of JSON"},
		{"no experts", line("decode", "[]"), "experts of 0 layers"},
		{"phase", good + line("other", "[[1,2]]"), `the phase is "other", not prefill or decode, in line 3`},
		{"layers", good + line("decode", "[[1,2],[1,2]]"), "experts of 2 layers, not 1"},
		{"used", good + line("decode", "[[1]]"), "1 experts of a layer, not 2"},
		{"none used", line("decode", "[[]]"), "0 experts of a layer"},
		{"twice", good + line("decode", "[[5,5]]"), "expert 5 twice"},
		{"negative", good + line("decode", "[[-1,5]]"), "experts must be a list of lists of whole numbers, in line 3"},
		{"long", good + `{"phase":"` + strings.Repeat("x", maxLine+1), "the line is longer than 262144 bytes, in line 3"},
	} {
		_, err := load([]byte(c.data))
		var damaged *FormatError
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if x, err := load([]byte(good)); err != nil || x.Header.Experts != 3 || x.Steps != 2 {
		t.Errorf("%v: %+v", err, x)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(good)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := load(packed.Bytes()); err != nil {
		t.Error(err)
	}
	if _, err := load(packed.Bytes()[:packed.Len()-6]); err == nil {
		t.Error("a cut gzip file is read")
	}
}

// A file that changes between its two readings is refused, not believed.
func TestChangedLines(t *testing.T) {
	for _, second := range []string{
		`{"phase":"decode","experts":[[1,9]]}`, `{"phase":"decode","experts":[[1,2],[1,2]]}`, `{"phase":"decode","experts":[[1]]}`,
	} {
		f := &twoFaced{faces: []string{`{"phase":"decode","experts":[[1,2]]}` + "\n", second + "\n"}}
		src, err := newLines(f, false)
		if err == nil {
			_, err = Load(src, nil)
		}
		var damaged *FormatError
		if !errors.As(err, &damaged) {
			t.Errorf("%s: %v", second, err)
		}
	}
}

// twoFaced has another content after every Seek.
type twoFaced struct {
	faces []string
	*strings.Reader
}

func (f *twoFaced) Seek(int64, int) (int64, error) {
	f.Reader, f.faces = strings.NewReader(f.faces[0]), f.faces[1:]
	return 0, nil
}

func FuzzOpen(f *testing.F) {
	f.Add(tiny(f))
	f.Add([]byte(`{"conversation":0,"phase":"prefill","experts":[[1,2]]}` + "\n"))
	packed, err := os.ReadFile(small)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed[:200])
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := load(data)
		if err != nil {
			return
		}
		if x.Header.Layers*x.Header.Experts > 1<<10 || len(x.steps) > 1<<10 {
			return
		}
		out, err := x.Replay(context.Background(), Setting{Policies: []string{"static", "lru", "lfu", "adaptive"}, Slots: []int{1, 7}, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			if o.Hits > o.Optimal {
				t.Errorf("%+v", o)
			}
		}
		if err := x.Page(io.Discard, "x", out); err != nil {
			t.Fatal(err)
		}
	})
}

// failing fails after some bytes.
type failing struct{ left int }

var errFull = errors.New("the disk is full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// The first error of the destination is what the run hears of, at the latest when it closes the trace.
func TestWriterFails(t *testing.T) {
	w, err := NewWriter(&failing{left: 3 * writerBuffer}, Header{Layers: 1, Experts: 8, Used: 2})
	if err != nil {
		t.Fatal(err)
	}
	failed := error(nil)
	for range 100_000 {
		if failed = errors.Join(w.Step(), w.Visit(0, 1, []int32{1, 2})); failed != nil {
			break
		}
	}
	if !errors.Is(failed, errFull) || !errors.Is(w.Close(), errFull) {
		t.Error(failed)
	}
	w, err = NewWriter(&failing{}, Header{Layers: 1, Experts: 8, Used: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

func TestWriterRefuses(t *testing.T) {
	if _, err := NewWriter(io.Discard, Header{Layers: 1, Experts: 8}); err == nil {
		t.Error("a header without experts that are used")
	}
	for _, c := range []struct {
		name          string
		layer, decode int
		experts       []int32
	}{
		{"layer", 2, 1, []int32{1, 2}}, {"same layer", 0, 1, []int32{1, 2}}, {"half a row", 1, 1, []int32{1, 2, 3}},
		{"no row", 1, 0, nil}, {"more answers than rows", 1, 2, []int32{1, 2}}, {"expert", 1, 1, []int32{1, 8}}, {"negative", 1, 1, []int32{1, -1}},
	} {
		w, err := NewWriter(io.Discard, Header{Layers: 2, Experts: 8, Used: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Visit(0, 1, []int32{1, 2}); err == nil {
			t.Error("a layer before the first step")
		}
		if err := errors.Join(w.Step(), w.Visit(0, 1, []int32{1, 2})); err != nil {
			t.Fatal(err)
		}
		if err := w.Visit(c.layer, c.decode, c.experts); err == nil {
			t.Error(c.name)
		}
	}
}

// Memory is asked for before it is taken, and a refusal ends the load.
func TestLoadAsks(t *testing.T) {
	src, err := NewReader(bytes.NewReader(tiny(t)))
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	if _, err := Load(src, func(int64) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	var granted int64
	f, err := os.Open(small)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Load(lines, func(n int64) error { granted += n; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if least := int64(len(x.steps)) * perVisit; granted < least {
		t.Errorf("%d bytes were granted, %d are held", granted, least)
	}
}
