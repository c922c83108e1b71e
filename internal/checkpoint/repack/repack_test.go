package repack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// disk is a file that insists on aligned reads and counts them.
type disk struct {
	vfs.File
	align, reads int
	bytes        int64
	fail         bool
}

func (d *disk) Align() int { return d.align }

func (d *disk) ReadAt(p []byte, off int64) (int, error) {
	if off%int64(d.align) != 0 || len(p)%d.align != 0 || !mem.IsAligned(p, d.align) {
		return 0, fmt.Errorf("%d bytes at %d are not aligned", len(p), off)
	}
	if d.fail {
		return 0, syscall.EIO
	}
	d.reads++
	d.bytes += int64(len(p))
	return d.File.ReadAt(p, off)
}

// shelf is tensors of random bytes in one file.
type shelf struct {
	rng  *rand.ChaCha8
	data []byte
	disk *disk
}

func newShelf() *shelf {
	return &shelf{rng: rand.NewChaCha8([32]byte{3}), data: make([]byte, 77)} // tensors lie anywhere
}

func (s *shelf) tensor(name, dtype string, width int, shape ...int) *Tensor {
	t := &Tensor{Name: name, DType: dtype, Shape: shape, Offset: int64(len(s.data)), Bytes: int64(width)}
	switch dtype {
	case "F32":
		t.Type = quant.F32
	case "F16":
		t.Type = quant.F16
	case "BF16":
		t.Type = quant.BF16
	default:
		t.Type = quant.I8
	}
	for _, d := range shape {
		t.Bytes *= int64(d)
	}
	b := make([]byte, t.Bytes)
	s.rng.Read(b)
	s.data = append(s.data, b...)
	return t
}

func (s *shelf) bytes(t *Tensor) []byte { return s.data[t.Offset:][:t.Bytes] }

func (s *shelf) file() *File {
	s.disk = &disk{align: 512}
	return New("test", []vfs.File{s.disk})
}

// close ends the adding of tensors.
func (s *shelf) close() { s.disk.File = vfs.Bytes("disk", s.data) }

func read(t *testing.T, f *File, off int64, n int, scratch int) []byte {
	t.Helper()
	b := bytes.Repeat([]byte{0xa5}, n)
	got, err := f.ReadWith(b, off, mem.AlignUp(make([]byte, scratch+4096), 4096)[:scratch])
	if got < n && !errors.Is(err, io.EOF) || got == n && err != nil {
		t.Fatal(got, n, err)
	}
	return b[:got]
}

// every adds a matrix of every kind.
func (s *shelf) every(t *testing.T, f *File) {
	t.Helper()
	must := func(_ Matrix, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	order := s.tensor("g_idx", "I32", 4, 96)
	for k, p := range rand.New(s.rng).Perm(96) {
		binary.LittleEndian.PutUint32(s.bytes(order)[4*k:], uint32(p/32))
	}
	for _, bits := range []int{2, 3, 4, 8} {
		x := Ints{Codes: s.tensor("q", "I32", 4, 96*bits/32, 160), Scales: s.tensor("s", "F16", 2, 3, 160), Zeros: s.tensor("z", "I32", 4, 3, 160*bits/32), Bits: bits, Group: 32, ZeroPlus: 1}
		must(f.AddGPTQ(x, 160, 96))
		x.Order, x.Ordered = order, true
		must(f.AddGPTQ(x, 160, 96))
	}
	must(f.AddAWQ(Ints{Codes: s.tensor("q", "I32", 4, 64, 9), Scales: s.tensor("s", "BF16", 2, 2, 72), Zeros: s.tensor("z", "I32", 4, 2, 9), Bits: 4, Group: 32}, 72, 64))
	for _, bits := range []int{2, 4, 8} {
		x := Ints{Codes: s.tensor("q", "I32", 4, 50, 96*bits/32), Scales: s.tensor("s", "F32", 4, 50, 3), Zeros: s.tensor("z", "I32", 4, (50*bits+31)/32, 3), Bits: bits, Group: 32}
		must(f.AddPacked(x, 50, 96))
		x.Order, x.Ordered = order, true
		must(f.AddPacked(x, 50, 96))
	}
	must(f.AddInt8(Ints{Codes: s.tensor("q", "I8", 1, 33, 64), Scales: s.tensor("s", "F32", 4, 33, 1), Zeros: s.tensor("z", "I8", 1, 33, 1)}, 33, 64))
	must(f.AddInt8(Ints{Codes: s.tensor("q", "I8", 1, 33, 96), Scales: s.tensor("s", "F32", 4, 33, 3), Group: 32, Order: order, Ordered: true}, 33, 96))
	must(f.AddFP8(FP8{Codes: s.tensor("q", "F8_E4M3", 1, 150, 192), Scale: s.tensor("s", "F32", 4, 3, 3), Block: [2]int{64, 64}}, 150, 192))
	must(f.AddFP8(FP8{Codes: s.tensor("q", "F8_E5M2", 1, 10, 128)}, 10, 128))
	must(f.AddNF4(NF4{Codes: s.tensor("q", "U8", 1, 50*48, 1), AbsMax: s.tensor("a", "U8", 1, 75), Map: s.tensor("m", "F32", 4, 256), Nested: s.tensor("n", "F32", 4, 5), Block: 64, NestedBlock: 16}, 50, 96))
	must(f.AddNVFP4(NVFP4{Codes: s.tensor("q", "U8", 1, 20, 64), Scale: s.tensor("s", "F8_E4M3", 1, 20, 8), Tensor: s.tensor("t", "F32", 4, 1)}, 20, 128))
	stack := MXFP4{Codes: s.tensor("blocks", "U8", 1, 3, 20, 2, 16), Scale: s.tensor("scales", "U8", 1, 3, 20, 2)}
	for stack.Expert = range 3 {
		must(f.AddMXFP4(stack, 20, 64))
	}
}

// TestRanges reads random ranges with the least scratch: they are the bytes of one read of the whole.
func TestRanges(t *testing.T) {
	s := newShelf()
	f := s.file()
	s.every(t, f)
	s.close()
	whole := read(t, f, 0, int(f.Size()), f.ScratchBytes()+1<<20)
	rng := rand.New(s.rng)
	for range 400 {
		region := f.regions[rng.IntN(len(f.regions))]
		off := max(region.offset+int64(rng.IntN(region.rows*region.rowBytes))-int64(rng.IntN(40)), 0)
		n := 1 + rng.IntN(1+rng.IntN(2*region.rows*region.rowBytes))
		got := read(t, f, off, n, f.ScratchBytes())
		if want := whole[off:min(off+int64(n), f.Size())]; !bytes.Equal(got, want) {
			t.Fatalf("%d bytes at %d differ", n, off)
		}
	}
}

// TestWide has so many outputs that a few are read by requests of their own.
func TestWide(t *testing.T) {
	const rows, cols = 16384, 64
	s := newShelf()
	f := s.file()
	gptq, err := f.AddGPTQ(Ints{Codes: s.tensor("q", "I32", 4, cols/8, rows), Scales: s.tensor("s", "F32", 4, 2, rows), Zeros: s.tensor("z", "I32", 4, 2, rows/8), Bits: 4, Group: 32}, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	awq, err := f.AddAWQ(Ints{Codes: s.tensor("q", "I32", 4, cols, rows*8/8), Scales: s.tensor("s", "F32", 4, 2, rows*8), Zeros: s.tensor("z", "I32", 4, 2, rows*8/8), Bits: 4, Group: 32}, rows*8, cols)
	if err != nil {
		t.Fatal(err)
	}
	s.close()
	whole := read(t, f, 0, int(f.Size()), 4<<20)
	for _, m := range []Matrix{gptq, awq} {
		s.disk.reads, s.disk.bytes = 0, 0
		at := m.Offset + int64(3000*m.Type.RowBytes(cols)) + 7
		if !bytes.Equal(read(t, f, at, 20000, f.ScratchBytes()), whole[at:at+20000]) {
			t.Error("bytes differ")
		}
		if s.disk.bytes > 600<<10 {
			t.Errorf("%d bytes were read for 20000", s.disk.bytes)
		}
	}
}

// TestMXFP4 compares a stack of experts as gpt-oss ships it with the definition of its numbers.
func TestMXFP4(t *testing.T) {
	const experts, rows, cols = 3, 20, 64
	s := newShelf()
	f := s.file()
	x := MXFP4{Codes: s.tensor("blocks", "U8", 1, experts, rows, cols/32, 16), Scale: s.tensor("scales", "U8", 1, experts, rows, cols/32)}
	var at []Matrix
	for x.Expert = range experts {
		m, err := f.AddMXFP4(x, rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, m)
	}
	// The first expert as a matrix of its own, in the shape that compressed-tensors has.
	plain := MXFP4{Codes: s.tensor("packed", "U8", 1, rows, cols/2), Scale: s.tensor("scale", "U8", 1, rows, cols/32), Expert: -1}
	alone, err := f.AddMXFP4(plain, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	s.close()
	for i := range s.bytes(x.Scale) {
		s.bytes(x.Scale)[i] = byte(100 + i)
	}
	copy(s.bytes(plain.Codes), s.bytes(x.Codes))
	copy(s.bytes(plain.Scale), s.bytes(x.Scale))
	first := read(t, f, at[0].Offset, rows*alone.Type.RowBytes(cols), f.ScratchBytes())
	if !bytes.Equal(first, read(t, f, alone.Offset, len(first), f.ScratchBytes())) {
		t.Error("a matrix of its own has other bytes than the same expert of a stack")
	}
	values := [8]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	row := make([]float32, cols)
	for e, m := range at {
		raw := read(t, f, m.Offset, rows*m.Type.RowBytes(cols), f.ScratchBytes())
		for r := range rows {
			if err := quant.DecodeRow(m.Type, row, raw[r*m.Type.RowBytes(cols):][:m.Type.RowBytes(cols)]); err != nil {
				t.Fatal(err)
			}
			for k, got := range row {
				i := (e*rows+r)*cols + k
				code := s.bytes(x.Codes)[i/2] >> (i % 2 * 4) & 15
				want := math.Ldexp(values[code&7], int(s.bytes(x.Scale)[i/32])-127)
				if code > 7 {
					want = -want
				}
				if float64(got) != want {
					t.Fatalf("expert %d, row %d, column %d: %v, want %v", e, r, k, got, want)
				}
			}
		}
	}
}

// TestOrderRefused has groups that are no groups, and an order where the configuration denies one.
func TestOrderRefused(t *testing.T) {
	for name, c := range map[string]struct {
		group   func(k int) int
		ordered bool
		want    string
	}{
		"negative":  {func(k int) int { return -1 }, true, "column 0 is in group -1"},
		"too large": {func(k int) int { return k / 16 }, true, "is in group 2"},
		"too many":  {func(k int) int { return 0 }, true, "column 32 is in group 0"},
		"denied":    {func(k int) int { return 1 - k/32 }, false, "not reordered"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			f := s.file()
			g := s.tensor("my.g_idx", "I32", 4, 64)
			for k := range 64 {
				binary.LittleEndian.PutUint32(s.bytes(g)[4*k:], uint32(int32(c.group(k))))
			}
			x := Ints{Codes: s.tensor("q", "I32", 4, 8, 32), Scales: s.tensor("s", "F16", 2, 2, 32), Zeros: s.tensor("z", "I32", 4, 2, 4), Order: g, Ordered: c.ordered, Bits: 4, Group: 32}
			m, err := f.AddGPTQ(x, 32, 64)
			if err != nil {
				t.Fatal(err)
			}
			s.close()
			_, err = f.ReadWith(make([]byte, 100), m.Offset, make([]byte, f.ScratchBytes()))
			var damaged *container.Error
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "my.g_idx") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	s := newShelf()
	f := s.file()
	s.every(t, f)
	s.close()
	s.disk.fail = true
	for _, r := range f.regions {
		_, err := f.ReadWith(make([]byte, 10), r.offset, make([]byte, f.ScratchBytes()))
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%v", err)
		}
	}
	s.disk.fail, s.disk.File = false, vfs.Bytes("short", s.data[:1000])
	if _, err := f.ReadWith(make([]byte, 100), f.regions[len(f.regions)-1].offset, make([]byte, f.ScratchBytes())); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	if _, err := f.ReadAt(nil, 0); err == nil {
		t.Error("read without scratch")
	}
}

// TestZeroBytes has the same zero points packed and as signed bytes.
func TestZeroBytes(t *testing.T) {
	const rows, cols = 24, 64
	s := newShelf()
	f := s.file()
	x := Ints{Codes: s.tensor("q", "I32", 4, rows, cols/8), Scales: s.tensor("s", "F32", 4, rows, 2), Zeros: s.tensor("z", "I32", 4, rows/8, 2), Bits: 4, Group: 32}
	plain := s.tensor("z", "I8", 1, rows, 2)
	for r := range rows {
		for g := range 2 {
			w := binary.LittleEndian.Uint32(s.bytes(x.Zeros)[(r/8*2+g)*4:])
			s.bytes(plain)[r*2+g] = byte(w>>(r%8*4)&15) - 8
		}
	}
	packed, err := f.AddPacked(x, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	x.Zeros = plain
	bytewise, err := f.AddPacked(x, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	s.close()
	n := rows * packed.Type.RowBytes(cols)
	if !bytes.Equal(read(t, f, packed.Offset, n, f.ScratchBytes()), read(t, f, bytewise.Offset, n, f.ScratchBytes())) {
		t.Error("zero points differ")
	}
}

// TestOrderOfBytes has the same reordered codes in words and as signed bytes.
func TestOrderOfBytes(t *testing.T) {
	const rows, cols = 5, 96
	s := newShelf()
	f := s.file()
	x := Ints{Codes: s.tensor("q", "I32", 4, rows, cols/4), Scales: s.tensor("s", "F32", 4, rows, 3), Order: s.tensor("g_idx", "I32", 4, cols), Ordered: true, Bits: 8, Group: 32}
	for k := range cols {
		binary.LittleEndian.PutUint32(s.bytes(x.Order)[4*k:], uint32(k%3))
	}
	plain := s.tensor("q", "I8", 1, rows, cols)
	for i, c := range s.bytes(x.Codes) {
		s.bytes(plain)[i] = c - 128
	}
	packed, err := f.AddPacked(x, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	x.Codes = plain
	bytewise, err := f.AddInt8(x, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	s.close()
	n := rows * packed.Type.RowBytes(cols)
	if !bytes.Equal(read(t, f, packed.Offset, n, f.ScratchBytes()), read(t, f, bytewise.Offset, n, f.ScratchBytes())) {
		t.Error("codes differ")
	}
}

// TestCutWords has matrices whose codes or zero points would end within a word.
func TestCutWords(t *testing.T) {
	s := newShelf()
	f := s.file()
	codes := s.tensor("my.qweight", "I32", 4, 8, 8)
	for _, c := range []struct {
		bits, rows, cols int
		want             string
	}{{4, 12, 64, "12 outputs of 4 bits"}, {3, 40, 64, "40 outputs of 3 bits"}, {4, 64, 72, "72 columns with a scale for every 24"}} {
		x := Ints{Codes: codes, Bits: c.bits, Group: 24}
		adds := []func(Ints, int, int) (Matrix, error){f.AddGPTQ}
		if c.bits == 4 {
			adds = append(adds, f.AddAWQ)
		}
		for _, add := range adds {
			if _, err := add(x, c.rows, c.cols); err == nil || !strings.Contains(err.Error(), "my.qweight") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
	}
}
