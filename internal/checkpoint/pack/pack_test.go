package pack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// content is n bytes that differ everywhere.
func content(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{7}).Read(b)
	return b
}

// emptyFile is an original's metadata.
func emptyFile(t testing.TB, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	if format == formatGGUF {
		w := gguf.NewWriter(&b)
		err = errors.Join(w.Set("general.architecture", "test"), w.Set("list", []string{"a", "b"}), w.Close())
	} else {
		w := safetensors.NewWriter(&b)
		w.SetMeta("format", "pt")
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sample is a job with a file, a trunk of three pieces and two experts of two slices each, of content that lies
// in one file.
func sample(t testing.TB, format string, fs func(vfs.File) vfs.File) Job {
	t.Helper()
	data := content(3 << 20)
	source := vfs.File(vfs.Bytes("source", data))
	if fs != nil {
		source = fs(source)
	}
	meta := emptyFile(t, format)
	tensor := func(name string, at, slice, stride int64, shape ...int) container.Tensor {
		return container.Tensor{Name: name, Type: quant.F32, DType: "F32", Shape: shape, Offset: at, Slice: slice, Stride: stride}
	}
	const trunk, experts = 2 * Align, 2*Align + 5<<19
	j := Job{
		Path: filepath.Join(t.TempDir(), "model.spill"),
		Manifest: Manifest{
			Format: format, Identity: "original",
			Inner:  []Inner{{"metadata." + format, 0, int64(len(meta))}, {"config.json", Align, 2}},
			Groups: []Group{{Name: "files", Bytes: trunk, Count: 1}, {Name: "trunk", Bytes: 5 << 19, Count: 1}, {Name: "layer.0.experts", Bytes: Align, Count: 2}},
			Tensors: []container.Tensor{
				tensor("b", trunk+64, 0, 0, 5<<17-100), tensor("a", trunk, 0, 0, 16), // 64 bytes
				tensor("up", experts, 800, Align, 2, 10, 20), tensor("down", experts+832, 40, Align, 2, 1, 10),
			},
		},
		Memory: mem.AlignUp(make([]byte, WriteMemory(4096)+4096), 4096),
	}
	j.Manifest.Place()
	start := j.Manifest.DataStart()
	from := int64(0)
	part := func(at, n int64) {
		j.Parts = append(j.Parts, Part{At: start + at, File: source, Offset: from, Bytes: n})
		from += n
	}
	j.Parts = append(j.Parts, Part{At: start, File: vfs.Bytes("meta", meta), Bytes: int64(len(meta))}, Part{At: start + Align, File: vfs.Bytes("c", "{}"), Bytes: 2})
	part(trunk, 64)
	part(trunk+64, 5<<19-400)
	for e := range int64(2) {
		part(experts+e*Align, 800)
		part(experts+e*Align+832, 40)
	}
	return j
}

func write(t testing.TB, j Job) []byte {
	t.Helper()
	if _, err := Write(context.Background(), j); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(j.Path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(Partial(j.Path)); err == nil {
		t.Error("the partial file is still there")
	}
	return b
}

// full reads a file as verify does: all digests.
func full(b []byte) error {
	p, _, err := Read(vfs.Bytes("x.spill", b))
	for i := int64(0); err == nil && i < p.Pieces(); i++ {
		err = p.checkPiece(i)
	}
	return err
}

func TestRoundTrip(t *testing.T) {
	for _, format := range []string{formatGGUF, formatSafetensors} {
		j := sample(t, format, nil)
		b := write(t, j)
		f := vfs.Bytes("x.spill", b)
		p, h, err := Read(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.Sample(), full(b)); err != nil {
			t.Error(err)
		}
		if p.Format != format || p.Identity != "original" || h.Alignment != Align || len(h.Tensors) != 4 || int64(len(b)) != p.Size() {
			t.Errorf("%+v", h)
		}
		if format == formatGGUF {
			if v, ok := h.Meta.String("general.architecture"); !ok || v != "test" {
				t.Errorf("metadata %q", v)
			}
			if n, ok := h.Meta.Count("list"); !ok || n != 2 {
				t.Errorf("a list of %d", n)
			}
		}
		config, err := p.OpenInner("config.json")
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 8)
		if n, _ := config.ReadAt(buf, 0); string(buf[:n]) != "{}" || config.Size() != 2 {
			t.Errorf("config %q", buf[:n])
		}
		if _, err := p.OpenInner("none"); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		checkTensors(t, b, h.Tensors)
	}
}

// checkTensors compares the tensors' bytes with their parts of the source.
func checkTensors(t *testing.T, b []byte, tensors []container.Tensor) {
	t.Helper()
	data := content(3 << 20)
	const big = 5<<19 - 400
	want := map[string][]byte{
		"a": data[:64], "b": data[64 : 64+big],
		"up":   slices.Concat(data[64+big:][:800], data[64+big+840:][:800]),
		"down": slices.Concat(data[64+big+800:][:40], data[64+big+1640:][:40]),
	}
	for i := range tensors {
		x := &tensors[i]
		var got []byte
		for off := int64(0); off < x.Bytes; {
			at, n := x.At(off)
			got = append(got, b[at:at+n]...)
			off += n
		}
		if !bytes.Equal(got, want[x.Name]) {
			t.Errorf("%s has other bytes", x.Name)
		}
	}
}

// A job that is interrupted after any piece, and one whose last bytes were lost with the power, are continued: the
// file is the same as of one that was not.
func TestInterrupted(t *testing.T) {
	want := write(t, sample(t, formatGGUF, nil))
	for stop := 1; stop < 6; stop++ {
		j := sample(t, formatGGUF, nil)
		j.Batch = 1
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		j.Progress = func(int64, int64) {
			if n++; n == stop {
				cancel()
			}
		}
		_, err := Write(ctx, j)
		if err == nil { // what was read ahead was all
			continue
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		lose(t, j)
		j.Progress = nil
		r, err := Write(context.Background(), j)
		if err != nil || r.Resumed == 0 {
			t.Fatalf("stopped at %d: %+v, %v", stop, r, err)
		}
		if got, err := os.ReadFile(j.Path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("stopped at %d: another file (%v)", stop, err)
		}
	}
}

// lose spoils what an interrupted job has no digest for, as if it had not reached the drive, and checks that
// nobody takes the file for a whole one.
func lose(t *testing.T, j Job) {
	t.Helper()
	b, err := os.ReadFile(Partial(j.Path))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Read(vfs.Bytes("x", b))
	refused(t, err, "is not complete", "the same pack command continues it")
	h, err := decodeHead(b[:headBytes])
	if err != nil {
		t.Fatal(err)
	}
	for i := range h.pieces {
		if digest := b[h.tableStart()+i*digestSize:][:digestSize]; len(bytes.Trim(digest, "\x00")) == 0 {
			x := j.Manifest.Piece(i)
			copy(b[x.Offset:], bytes.Repeat([]byte{0xee}, int(x.Bytes)))
		}
	}
	if err := os.WriteFile(Partial(j.Path), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What the source cannot give ends the job; what came before is kept.
func TestSourceFails(t *testing.T) {
	j := sample(t, formatGGUF, vfs.Fault(vfs.OS(), vfs.Plan{FailRead: 4}).Wrap)
	if _, err := Write(context.Background(), j); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	again := sample(t, formatGGUF, nil)
	again.Path = j.Path
	r, err := Write(context.Background(), again)
	if err != nil || r.Resumed == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestNotReplaced(t *testing.T) {
	j := sample(t, formatGGUF, nil)
	want := write(t, j)
	if _, err := Write(context.Background(), j); err == nil || !strings.Contains(err.Error(), "--force replaces it") {
		t.Error(err)
	}
	j.Force = true
	if got := write(t, j); !bytes.Equal(got, want) {
		t.Error("another file")
	}
	j.Path = t.TempDir()
	if _, err := Write(context.Background(), j); err == nil {
		t.Error("a folder was replaced")
	}
}

// A partial file of another model is not continued; one that never began is.
func TestOtherPartial(t *testing.T) {
	j := sample(t, formatGGUF, nil)
	other := sample(t, formatSafetensors, nil)
	other.Path = j.Path
	ctx, cancel := context.WithCancel(context.Background())
	other.Progress = func(int64, int64) { cancel() }
	if _, err := Write(ctx, other); err == nil {
		t.Fatal("not interrupted")
	}
	if _, err := Write(context.Background(), j); err == nil || !strings.Contains(err.Error(), "of another model") {
		t.Error(err)
	}
	j.Force = true
	write(t, j)

	j = sample(t, formatGGUF, nil)
	if err := os.WriteFile(Partial(j.Path), make([]byte, 3*headBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := full(write(t, j)); err != nil {
		t.Error(err)
	}
}

// Nothing begins where the drive has no room.
func TestNoRoom(t *testing.T) {
	j := sample(t, formatGGUF, nil)
	j.Manifest.Groups[2].Count = 1 << 30
	j.Manifest.Groups[2].Bytes = 1 << 26
	_, err := Write(context.Background(), j)
	if err == nil || !strings.Contains(err.Error(), "MiB free") {
		t.Skipf("skipped: nobody knows how much is free here (%v)", err)
	}
	if _, err := os.Stat(Partial(j.Path)); err == nil {
		t.Error("something was written")
	}
}

// refused wants one line of a *container.Error that names all of names.
func refused(t testing.TB, err error, names ...string) {
	t.Helper()
	var format *container.Error
	if !errors.As(err, &format) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v (%T) is not an error of the format", err, err)
		return
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %s", err, name)
		}
	}
}

// Every byte counts: whichever changes, the file is damaged, and the error says where.
func TestDamage(t *testing.T) {
	sound := write(t, sample(t, formatGGUF, nil))
	random := rand.New(rand.NewPCG(1, 2))
	at := []int{0, 8, 12, 16, 24, 32, 40, 44, 48, 100, headFields, headFields + digestSize, headBytes - 1, headBytes, headBytes + 30, 2*headBytes + 5, len(sound) - 1}
	for range 40 {
		at = append(at, random.IntN(len(sound)))
	}
	h, err := decodeHead(sound[:headBytes])
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range at {
		if gap := int64(i); gap >= headBytes+h.manifest && gap < h.tableStart() || gap >= h.tableStart()+h.pieces*digestSize && gap < h.dataStart() {
			continue // padding that nobody reads
		}
		b := bytes.Clone(sound)
		b[i] ^= 0x10
		if err := full(b); err == nil {
			t.Errorf("byte %d is changed, and nobody saw it", i)
		} else {
			refused(t, err)
		}
	}
	b := bytes.Clone(sound)
	b[len(b)-1] ^= 1
	p, _, err := Read(vfs.Bytes("x", b))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, p.Sample(), `bundle 1 of "layer.0.experts": the bytes from`)
}

func TestTruncated(t *testing.T) {
	sound := write(t, sample(t, formatSafetensors, nil))
	for _, n := range []int{0, 7, 8, headBytes - 1, headBytes, headBytes + 10, 2 * headBytes, 3*headBytes + 1, len(sound) - Align, len(sound) - 1} {
		_, _, err := Read(vfs.Bytes("x", sound[:n]))
		refused(t, err)
	}
	_, _, err := Read(vfs.Bytes("x", append(bytes.Clone(sound), 0)))
	refused(t, err, "its head says")
}

// sealed makes a file of a manifest whose digests are right, whatever it says.
func sealed(manifest, rest []byte, pieces int64) []byte {
	h := head{manifest: int64(len(manifest)), pieces: pieces, complete: true, digest: sha256.Sum256(manifest)}
	b := make([]byte, h.dataStart(), h.dataStart()+int64(len(rest)))
	copy(b[headBytes:], manifest)
	h.table = sha256.Sum256(b[h.tableStart() : h.tableStart()+pieces*digestSize])
	b = append(b, rest...)
	h.size = int64(len(b))
	copy(b, h.encode())
	return b
}

// Manifests that say what cannot be are refused.
func TestHostileManifest(t *testing.T) {
	sound := sample(t, formatGGUF, nil)
	b := write(t, sound)
	rest := b[sound.Manifest.DataStart():]
	for name, change := range map[string]func(m *Manifest){
		"":                    func(*Manifest) {},
		"not supported":       func(m *Manifest) { m.Format = "onnx" },
		"begins at":           func(m *Manifest) { m.Groups[1].Offset += Align },
		"has 0 bundles":       func(m *Manifest) { m.Groups[2].Count = 0 },
		"has 33554432":        func(m *Manifest) { m.Groups[2].Count = 2 << 24 },
		"the metadata":        func(m *Manifest) { m.Inner = nil },
		"config.json":         func(m *Manifest) { m.Inner[1].Offset += 5 },
		"there twice":         func(m *Manifest) { m.Inner[1].Name = m.Inner[0].Name },
		"are not possible":    func(m *Manifest) { m.Inner[1].Bytes = 1 << 40 },
		"it overlaps":         func(m *Manifest) { m.Tensors[0].Offset = m.Tensors[1].Offset + 63 },
		"pass the end":        func(m *Manifest) { m.Tensors[0].Offset += 400 },
		"lies in no group":    func(m *Manifest) { m.Tensors[0].Offset = 0 },
		"slices of 801 bytes": func(m *Manifest) { m.Tensors[2].Slice = 801 },
		"1 apart":             func(m *Manifest) { m.Tensors[2].Stride = 1 },
		"one group":           func(m *Manifest) { m.Tensors[3].Slice, m.Tensors[3].Stride, m.Tensors[3].Shape = 0, 0, []int{10} },
		"is not known":        func(m *Manifest) { m.Tensors[2].Type = 999 },
		"too large":           func(m *Manifest) { m.Tensors[2].Shape = []int{1 << 40, 1 << 40} },
		"dimensions":          func(m *Manifest) { m.Tensors[2].Shape = make([]int, 17) },
	} {
		j := sample(t, formatGGUF, nil)
		change(&j.Manifest)
		_, _, err := Read(vfs.Bytes("x", sealed(j.Manifest.encode(), rest, sound.Manifest.Pieces())))
		if name == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		refused(t, err, name)
	}
}

// Drives that fail are no fault of the file.
func TestReadFails(t *testing.T) {
	b := write(t, sample(t, formatGGUF, nil))
	for n := int64(1); ; n++ {
		faulty := vfs.Fault(vfs.OS(), vfs.Plan{FailRead: n})
		f := faulty.Wrap(vfs.Bytes("x", b))
		p, _, err := Read(f)
		if err == nil {
			err = p.Sample()
		}
		var format *container.Error
		if faulty.Reads() < n {
			return
		}
		if !errors.Is(err, syscall.EIO) || errors.As(err, &format) {
			t.Errorf("read %d: %v", n, err)
		}
	}
}

// FuzzRead has manifests with right digests: whatever they say, reading ends, with an error or a sound catalog.
func FuzzRead(f *testing.F) {
	const size = 8 * Align
	rest := make([]byte, size)
	copy(rest, emptyFile(f, formatGGUF))
	for _, format := range []string{formatGGUF, formatSafetensors} {
		j := sample(f, format, nil)
		m := &j.Manifest
		for i := range m.Groups {
			m.Groups[i].Bytes = 2 * Align
		}
		for i, at := range []int64{2*Align + 64, 2 * Align, 4 * Align, 4*Align + 832} {
			m.Tensors[i].Offset = at
		}
		m.Tensors[0].Shape = []int{100}
		m.Tensors[2].Stride, m.Tensors[3].Stride = 2*Align, 2*Align
		m.Inner[0].Offset, m.Inner[1].Offset = 0, Align
		m.Place()
		if _, _, err := Read(vfs.Bytes("x", sealed(m.encode(), rest, m.Pieces()))); (err == nil) != (format == formatGGUF) {
			f.Fatal(err)
		}
		f.Add(m.encode(), m.Pieces())
	}
	f.Fuzz(func(t *testing.T, manifest []byte, pieces int64) {
		if pieces < 0 || pieces > 1000 || len(manifest) > 1<<16 {
			return
		}
		p, h, err := Read(vfs.Bytes("x", sealed(manifest, rest, pieces)))
		if err != nil {
			refused(t, err)
			return
		}
		for i := range h.Tensors {
			checkPlace(t, p, &h.Tensors[i])
		}
	})
}

// checkPlace wants all bytes of a tensor in bundles.
func checkPlace(t *testing.T, p *File, x *container.Tensor) {
	t.Helper()
	for off := int64(0); off < x.Bytes; {
		at, n := x.At(off)
		if n < 1 || at < p.Groups[0].End() || at+n > p.Size() {
			t.Fatalf("%s: %d bytes at %d", x.Name, n, at)
		}
		off += n
	}
}
