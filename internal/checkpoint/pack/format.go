// Package pack reads and writes packed models: one file in which everything that is needed together, such as
// a layer's trunk or one expert with all its matrices, is one contiguous range that begins at a multiple of
// 4096 bytes. docs/pack.md has the format.
package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/vfs"
)

// Extension of packed files.
const Extension = ".spill"

const (
	magic   = "SPILPACK"
	version = 1
	// Align is where bundles begin. No drive that is known needs more for direct reads.
	Align = 4096
	// MatrixAlign is where tensors begin within a bundle.
	MatrixAlign = 64
	// PieceBytes is what one digest covers at most.
	PieceBytes = 1 << 20

	headBytes  = Align
	digestSize = sha256.Size

	maxManifest = 256 << 20
	maxName     = 64 << 10
	maxDims     = 16
	maxFiles    = 1 << 12
	maxGroups   = 1 << 20
	maxTensors  = 1 << 20
	firstAlloc  = 4096 // entries of a list that its count alone allocates
)

// Group is Count bundles of the same size, one after the other, without gaps. Together groups fill the file.
type Group struct {
	Name   string // such as layer.3.experts
	Offset int64
	Bytes  int64 // of each bundle, a multiple of Align: what it holds, then zeros
	Count  int
}

// End is where the next group begins.
func (g *Group) End() int64 { return g.Offset + g.Bytes*int64(g.Count) }

// Pieces is how many digests the bundles have together.
func (g *Group) Pieces() int64 { return int64(g.Count) * pieces(g.Bytes) }

func pieces(n int64) int64 { return (n + PieceBytes - 1) / PieceBytes }

// Inner is a file that is carried inside: the metadata, config.json, the tokenizer …
type Inner struct {
	Name   string
	Offset int64 // a multiple of Align
	Bytes  int64
}

// Manifest says what a packed file holds.
type Manifest struct {
	Format   string // of the original: gguf or safetensors
	Identity string // of the original
	Inner    []Inner
	Groups   []Group
	Tensors  []container.Tensor // File is 0
}

// DataStart is where the first group begins.
func (m *Manifest) DataStart() int64 { return m.Groups[0].Offset }

// Size is the size of the file.
func (m *Manifest) Size() int64 { return m.Groups[len(m.Groups)-1].End() }

// Pieces is the number of digests.
func (m *Manifest) Pieces() int64 {
	var n int64
	for i := range m.Groups {
		n += m.Groups[i].Pieces()
	}
	return n
}

// head is the first block of a file.
type head struct {
	size     int64 // of the file
	manifest int64 // bytes, from headBytes on
	pieces   int64 // digests, from the next multiple of Align on
	complete bool
	digest   [digestSize]byte // of the manifest
	table    [digestSize]byte // of the digests; zero while the file is not complete
}

func up(n int64) int64 { return (n + Align - 1) &^ (Align - 1) }

// tableStart is where the digests lie, dataStart where the first group does.
func (h *head) tableStart() int64 { return headBytes + up(h.manifest) }
func (h *head) dataStart() int64  { return h.tableStart() + up(h.pieces*digestSize) }

var order = binary.LittleEndian

// fields of the head, up to its own digest.
const headFields = 8 + 4 + 4 + 3*8 + 4 + 4 + 2*digestSize

func (h *head) encode() []byte {
	b := append(make([]byte, 0, headBytes), magic...)
	b = order.AppendUint32(b, version)
	b = order.AppendUint32(b, Align)
	b = order.AppendUint64(b, uint64(h.size))
	b = order.AppendUint64(b, uint64(h.manifest))
	b = order.AppendUint64(b, uint64(h.pieces))
	b = order.AppendUint32(b, PieceBytes)
	complete := uint32(0)
	if h.complete {
		complete = 1
	}
	b = order.AppendUint32(b, complete)
	b = append(append(b, h.digest[:]...), h.table[:]...)
	sum := sha256.Sum256(b)
	b = append(b, sum[:]...)
	return b[:headBytes]
}

// decodeHead reads a head and checks what it says of itself.
func decodeHead(b []byte) (h head, err error) {
	switch {
	case string(b[:8]) != magic:
		return h, fmt.Errorf("it begins with %q, not %q", b[:8], magic)
	case order.Uint32(b[8:]) != version:
		return h, fmt.Errorf("version %d of the format is not supported; version %d is", order.Uint32(b[8:]), version)
	}
	sum := sha256.Sum256(b[:headFields])
	if !bytes.Equal(sum[:], b[headFields:headFields+digestSize]) || len(bytes.Trim(b[headFields+digestSize:], "\x00")) > 0 {
		return h, fmt.Errorf("it is damaged: its digest is another one")
	}
	align, piece, complete := order.Uint32(b[12:]), order.Uint32(b[40:]), order.Uint32(b[44:])
	size, manifest, count := order.Uint64(b[16:]), order.Uint64(b[24:]), order.Uint64(b[32:])
	switch {
	case align != Align || piece != PieceBytes || complete > 1:
		return h, fmt.Errorf("alignment %d, pieces of %d bytes, state %d: these are not supported", align, piece, complete)
	case size > 1<<60 || manifest > maxManifest || count > size/Align:
		return h, fmt.Errorf("%d bytes of manifest and %d digests for a file of %d bytes are not possible", manifest, count, size)
	}
	h = head{size: int64(size), manifest: int64(manifest), pieces: int64(count), complete: complete == 1}
	copy(h.digest[:], b[48:])
	copy(h.table[:], b[48+digestSize:])
	return h, nil
}

// encode writes the manifest. Numbers are little-endian, texts have their length before them.
func (m *Manifest) encode() []byte {
	var b []byte
	number := func(n int64) { b = order.AppendUint64(b, uint64(n)) }
	text := func(s string) { b = append(order.AppendUint32(b, uint32(len(s))), s...) }
	text(m.Format)
	text(m.Identity)
	b = order.AppendUint32(b, uint32(len(m.Inner)))
	for _, f := range m.Inner {
		text(f.Name)
		number(f.Offset)
		number(f.Bytes)
	}
	b = order.AppendUint32(b, uint32(len(m.Groups)))
	for _, g := range m.Groups {
		text(g.Name)
		number(g.Offset)
		number(g.Bytes)
		number(int64(g.Count))
	}
	b = order.AppendUint32(b, uint32(len(m.Tensors)))
	for i := range m.Tensors {
		t := &m.Tensors[i]
		text(t.Name)
		if m.Format == formatGGUF {
			b = order.AppendUint32(b, uint32(t.Type))
		} else {
			text(t.DType)
		}
		b = order.AppendUint32(b, uint32(len(t.Shape)))
		for _, d := range t.Shape {
			number(int64(d))
		}
		number(t.Offset)
		number(t.Slice)
		number(t.Stride)
	}
	return b
}

// Formats of originals, as package checkpoint names them.
const (
	formatGGUF        = "gguf"
	formatSafetensors = "safetensors"
)

// Is reports whether a file begins as packed ones do. An error is the drive's.
func Is(f vfs.File) (bool, error) {
	b, err := container.NewReader(f, 0, int64(len(magic))).Next(len(magic))
	if container.Truncated(err) {
		return false, nil
	}
	return string(b) == magic, wrap(f, "", err)
}
