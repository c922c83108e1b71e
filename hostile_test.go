package spillway

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/models"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/tokenizer"
	"github.com/spillway/spillway/internal/vfs"
)

// tinyGGUF is a sound model of 29 KB; the damaged files are made of it.
const tinyGGUF = "testdata/tiny.gguf"

// tryModel loads a model and lets it answer three ids; the first error ends it. Whatever happens, every
// lease comes back.
func tryModel(t testing.TB, load func(rt *Runtime) (*Checkpoint, error)) error {
	t.Helper()
	rt, err := New(Options{Memory: 256 << 20, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Close(); err != nil || rt.Ledger().Used != 0 {
			t.Errorf("%d bytes are still leased: %v", rt.Ledger().Used, err)
		}
	}()
	c, err := load(rt)
	if err != nil {
		return err
	}
	m, err := c.Start(context.Background(), ModelOptions{Context: 16})
	if err != nil {
		return errors.Join(err, c.Close())
	}
	_, err = m.Probe(context.Background(), Probe{IDs: []int32{0, 1, 2}, Greedy: 2})
	return errors.Join(err, m.Close(), c.Close())
}

func tryFile(t testing.TB, path string) error {
	t.Helper()
	return tryModel(t, func(rt *Runtime) (*Checkpoint, error) { return rt.Load(context.Background(), path) })
}

// tryBytes is tryFile for a GGUF file in memory.
func tryBytes(t testing.TB, data []byte) error {
	t.Helper()
	return tryModel(t, func(rt *Runtime) (*Checkpoint, error) {
		return rt.load(context.Background(), false, func() (*checkpoint.Catalog, error) {
			return checkpoint.OpenFile(vfs.Bytes("hostile.gguf", data))
		})
	})
}

// fileFault reports whether an error says that the file is to blame (exit code 4).
func fileFault(err error) bool {
	var format *checkpoint.FormatError
	var config *models.ConfigError
	var missing *nn.MissingError
	var unsupported *tokenizer.UnsupportedError
	return errors.As(err, &format) || errors.As(err, &config) || errors.As(err, &missing) || errors.As(err, &unsupported)
}

// checkRefused wants an error of one line that blames the file and names what it should.
func checkRefused(t *testing.T, err error, names ...string) {
	t.Helper()
	if !fileFault(err) || strings.ContainsAny(err.Error(), "\n\r") {
		t.Fatalf("%v (%T) is not one line that blames the file", err, err)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %s", err, name)
		}
	}
}

// badWeights reports an error that weights of unsound values must give.
func badWeights(err error) bool {
	var overflow *nn.CacheRangeError
	return errors.As(err, &overflow) || strings.HasPrefix(err.Error(), "logit ")
}

// heapUse is what f allocates on the Go heap, freed or not.
func heapUse(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const mostHeap = 4 << 20 // for a file of 29 KB

func TestCorruptGGUF(t *testing.T) {
	dir := testutil.Shared(t, "oracle-gguf/corrupt")
	var list struct {
		Files []struct {
			File, Expect string
			Names        []string `json:"message_should_name"`
		}
	}
	readJSON(t, filepath.Join(dir, "corrupt.json"), &list)
	for _, f := range list.Files {
		t.Run(f.File, func(t *testing.T) {
			var err error
			if n := heapUse(func() { err = tryFile(t, filepath.Join(dir, f.File)) }); n > mostHeap {
				t.Errorf("%d bytes were allocated", n)
			}
			if f.Expect != "accept" {
				checkRefused(t, err, f.Names...)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// Valid files that are no models are refused by what they lack.
func TestOddGGUF(t *testing.T) {
	dir := testutil.Shared(t, "oracle-gguf/odd")
	var list map[string]struct {
		File   string
		Expect string
	}
	readJSON(t, filepath.Join(dir, "odd.json"), &list)
	for name, f := range list {
		if name == "split" || name == "unused-tensors" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			err := tryFile(t, filepath.Join(dir, f.File))
			checkRefused(t, err)
			if name == "empty" {
				checkRefused(t, err, "general.architecture")
			}
		})
	}
}

// A split set opens from any of its files, and tensors that nobody uses change nothing.
func TestSmallInOtherShapes(t *testing.T) {
	odd := testutil.Shared(t, "oracle-gguf/odd")
	digest := func(path string) string {
		m := openTest(t, path, ModelOptions{Context: 128, HeadRows: 64})
		d, err := digestOf(m, promptFor(2, m.Layout().Vocab))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := digest(testutil.Shared(t, "oracle-gguf/models/small.gguf"))
	shards := []string{"split-00001-of-00003.gguf", "split-00002-of-00003.gguf", "split-00003-of-00003.gguf"}
	for _, name := range append([]string{"unused-tensors.gguf"}, shards...) {
		if got := digest(filepath.Join(odd, name)); got != want {
			t.Errorf("%s has the digest %s, expected %s", name, got, want)
		}
	}
	for i, missing := range shards {
		dir := t.TempDir()
		for _, name := range slices.Delete(slices.Clone(shards), i, i+1) {
			copyFile(t, filepath.Join(odd, name), filepath.Join(dir, name))
		}
		checkRefused(t, tryFile(t, filepath.Join(dir, shards[(i+1)%3])), missing)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// mutate changes a few bytes: any, whole numbers to extremes, or the length of the file.
func mutate(random *rand.Rand, sound []byte) []byte {
	data := slices.Clone(sound)
	header := len(data)
	if random.IntN(4) > 0 {
		header = 12 << 10 // keys and tensors, which say more than weights do
	}
	for range 1 + random.IntN(3) {
		at := random.IntN(min(header, len(data)-8))
		switch random.IntN(5) {
		case 0:
			data[at] = byte(random.Uint32())
		case 1:
			data[at] ^= 1 << random.IntN(8)
		case 2:
			binary.LittleEndian.PutUint32(data[at:], []uint32{0, 1, 1 << 31, ^uint32(0), 77}[random.IntN(5)])
		case 3:
			binary.LittleEndian.PutUint64(data[at:], []uint64{0, 1 << 16, 1 << 40, 1 << 63, ^uint64(0)}[random.IntN(5)])
		case 4:
			if random.IntN(8) == 0 {
				return data[:at]
			}
		}
	}
	return data
}

// Mutations of a sound model are refused by the file's fault, or answer, or fail as a model of such
// weights must; nothing panics and nothing large is allocated.
func TestMutatedGGUF(t *testing.T) {
	sound, err := os.ReadFile(tinyGGUF)
	if err != nil {
		t.Fatal(err)
	}
	if err := tryBytes(t, sound); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	refused, answered := 0, 0
	for i := range 200 {
		data := mutate(random, sound)
		var err error
		if n := heapUse(func() { err = tryBytes(t, data) }); n > mostHeap {
			t.Errorf("mutation %d: %d bytes were allocated", i, n)
		}
		switch {
		case err == nil:
			answered++
		case fileFault(err):
			refused++
		case !badWeights(err):
			t.Errorf("mutation %d: %v", i, err)
		}
	}
	if refused < 30 || answered < 30 {
		t.Errorf("%d were refused and %d answered: the mutations are not worth much", refused, answered)
	}
}

// FuzzLoadGGUF reads a file up to its first tokens, and its tokenizer and template too.
func FuzzLoadGGUF(f *testing.F) {
	sound, err := os.ReadFile(tinyGGUF)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sound)
	random := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		f.Add(mutate(random, sound))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tryModel(t, func(rt *Runtime) (*Checkpoint, error) {
			c, err := rt.load(context.Background(), false, func() (*checkpoint.Catalog, error) {
				return checkpoint.OpenFile(vfs.Bytes("fuzz.gguf", data))
			})
			if err == nil {
				c.Name()
				c.Tokens(Request{Prompt: "Once upon a time"}) // an error is as good as ids
			}
			return c, err
		})
	})
}
