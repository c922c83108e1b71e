package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"slices"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/pack"
	"github.com/spillway/spillway/internal/vfs"
)

// A hasher digests a file and its tensors in one pass, and checks the pieces of a packed one.
type hasher struct {
	ctx      context.Context
	file     vfs.File
	progress func(n int64)

	at      int64 // position in the file
	extents []extent
	open    map[*checkpoint.Tensor]hash.Hash // that are not complete
	sums    []verifiedTensor
	pieces  *pieces // nil if the file is not packed
}

// extent is a range of the file that belongs to a tensor.
type extent struct {
	tensor *checkpoint.Tensor
	offset int64
	bytes  int64
	last   bool // of the tensor
}

func newHasher(ctx context.Context, cat *checkpoint.Catalog, file int) *hasher {
	h := &hasher{ctx: ctx, file: cat.Files[file].File, open: map[*checkpoint.Tensor]hash.Hash{}}
	for i := range cat.Tensors {
		t := &cat.Tensors[i]
		if t.File != file {
			continue
		}
		if t.Bytes == 0 {
			h.extents = append(h.extents, extent{t, t.Offset, 0, true})
		}
		for off := int64(0); off < t.Bytes; {
			pos, n := t.At(off)
			off += n
			h.extents = append(h.extents, extent{t, pos, n, off == t.Bytes})
		}
	}
	slices.SortStableFunc(h.extents, func(a, b extent) int { return cmp.Compare(a.offset, b.offset) })
	if cat.Packed != nil {
		h.pieces = newPieces(cat.Packed)
	}
	return h
}

func (h *hasher) run(buf []byte) (string, error) {
	r, err := vfs.NewReader(h.file, 0, h.file.Size(), buf)
	if err != nil {
		return "", err
	}
	whole, piece := sha256.New(), make([]byte, 32<<10)
	for {
		if err := h.ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(piece)
		whole.Write(piece[:n])
		if err := h.pieces.add(h.at, piece[:n]); err != nil {
			return "", err
		}
		h.add(piece[:n])
		h.progress(int64(n))
		if errors.Is(err, io.EOF) {
			h.add(nil)
			return hex.EncodeToString(whole.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// add passes the tensors' parts of the file's next bytes on.
func (h *hasher) add(b []byte) {
	for len(h.extents) > 0 {
		x := &h.extents[0]
		skip := min(max(x.offset-h.at, 0), int64(len(b)))
		b, h.at = b[skip:], h.at+skip
		n := min(max(x.offset+x.bytes-h.at, 0), int64(len(b)))
		if h.open[x.tensor] == nil {
			h.open[x.tensor] = sha256.New()
		}
		h.open[x.tensor].Write(b[:n])
		b, h.at = b[n:], h.at+n
		if h.at < x.offset+x.bytes {
			return
		}
		if t := x.tensor; x.last {
			h.sums = append(h.sums, verifiedTensor{t.Name, t.DType, t.Bytes, hex.EncodeToString(h.open[t].Sum(nil))})
			delete(h.open, t)
		}
		h.extents = h.extents[1:]
	}
	h.at += int64(len(b))
}

// pieces compares a packed file's pieces with their digests while it is read from front to back.
type pieces struct {
	file *pack.File
	next int64 // piece
	now  pack.Piece
	sum  hash.Hash
	want []byte // digests from the next piece on
}

func newPieces(f *pack.File) *pieces { return &pieces{file: f, now: f.Piece(0), sum: sha256.New()} }

// add passes on bytes of the file, which lie at offset at.
func (p *pieces) add(at int64, b []byte) error {
	if p == nil || p.next == p.file.Pieces() {
		return nil
	}
	for {
		skip := min(max(p.now.Offset-at, 0), int64(len(b)))
		b, at = b[skip:], at+skip
		n := min(p.now.Offset+p.now.Bytes-at, int64(len(b)))
		p.sum.Write(b[:n])
		b, at = b[n:], at+n
		if at < p.now.Offset+p.now.Bytes {
			return nil
		}
		if err := p.check(); err != nil || p.next == p.file.Pieces() {
			return err
		}
	}
}

// check compares a complete piece, and begins the next one.
func (p *pieces) check() (err error) {
	const ahead = 64
	if len(p.want) == 0 {
		n := min(p.file.Pieces()-p.next, ahead)
		if p.want, err = p.file.Digests(p.next, int(n)); err != nil {
			return err
		}
	}
	if !bytes.Equal(p.sum.Sum(nil), p.want[:sha256.Size]) {
		return p.file.Wrong(p.now)
	}
	p.want = p.want[sha256.Size:]
	p.sum.Reset()
	if p.next++; p.next < p.file.Pieces() {
		p.now = p.file.Piece(p.next)
	}
	return nil
}
