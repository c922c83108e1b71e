package pack

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/spillway/spillway/internal/checkpoint/container"
)

// Piece is a range of a bundle that has a digest of its own.
type Piece struct {
	Group  *Group
	Bundle int   // in its group
	Offset int64 // in the file
	Bytes  int64
}

// Where names the piece for people.
func (x Piece) Where() string {
	name := container.Name(x.Group.Name)
	if x.Group.Count > 1 {
		name = fmt.Sprintf("%d of %s", x.Bundle, name)
	}
	return "bundle " + name
}

// Piece returns number i, from 0 on, in the order of the file.
func (m *Manifest) Piece(i int64) Piece {
	for k := range m.Groups {
		g := &m.Groups[k]
		if n := g.Pieces(); i >= n {
			i -= n
			continue
		}
		each := pieces(g.Bytes)
		bundle, at := i/each, i%each*PieceBytes
		return Piece{g, int(bundle), g.Offset + bundle*g.Bytes + at, min(PieceBytes, g.Bytes-at)}
	}
	panic("pack: no such piece")
}

// Digests reads the digests of n pieces from number i on.
func (p *File) Digests(i int64, n int) ([]byte, error) {
	start := p.head.tableStart() + i*digestSize
	b, err := container.NewReader(p.f, start, start+int64(n)*digestSize).Append(nil, n*digestSize)
	return b, wrap(p.f, "digests", err)
}

// Wrong is the error of a piece that has another digest than it should.
func (p *File) Wrong(x Piece) error {
	return fail(p.f, x.Where(), again, "the bytes from %d to %d are not those that were packed", x.Offset, x.Offset+x.Bytes)
}

// samples is how many pieces Sample reads.
const samples = 8

// Sample compares some pieces, the first and the last among them, with their digests.
func (p *File) Sample() error {
	last := int64(-1)
	for s := range int64(samples) {
		i := (p.head.pieces - 1) * s / (samples - 1)
		if i == last {
			continue
		}
		last = i
		if err := p.checkPiece(i); err != nil {
			return err
		}
	}
	return nil
}

func (p *File) checkPiece(i int64) error {
	want, err := p.Digests(i, 1)
	if err != nil {
		return err
	}
	x, sum := p.Piece(i), sha256.New()
	r := container.NewReader(p.f, x.Offset, x.Offset+x.Bytes)
	for r.Left() > 0 {
		b, err := r.Next(int(min(r.Left(), container.MaxNext)))
		if err != nil {
			return wrap(p.f, x.Where(), err)
		}
		sum.Write(b)
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return p.Wrong(x)
	}
	return nil
}
