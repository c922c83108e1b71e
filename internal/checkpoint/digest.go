package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/vfs"
)

const (
	samples     = 16      // of each file's data
	sampleBytes = 4 << 10 // of one sample
)

// Identity is a cheap name for the checkpoint's content: the sha256, in hexadecimal, of every file's
// size, header and 16 samples of its data, and of config.json. It does not prove the weights;
// Digest does.
func (c *Catalog) Identity(ctx context.Context) (string, error) {
	h := sha256.New()
	for i := range c.Files {
		f := &c.Files[i]
		number(h, f.Size)
		number(h, f.DataStart)
		if err := hashRange(ctx, h, f.File, 0, min(f.DataStart, f.Size)); err != nil {
			return "", err
		}
		data := f.Size - f.DataStart
		for s := range int64(samples) {
			// Spread from the first to the last byte of the data.
			at := f.DataStart + max(data-sampleBytes, 0)/(samples-1)*s
			if err := hashRange(ctx, h, f.File, at, min(at+sampleBytes, f.Size)); err != nil {
				return "", err
			}
		}
	}
	if c.Format == Safetensors && c.Packed == nil { // a packed file's header has a digest of it
		config, err := c.Config()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		number(h, int64(len(config)))
		h.Write(config)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func number(h hash.Hash, n int64) { h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }

// hashRange adds the bytes from start to before end.
func hashRange(ctx context.Context, h hash.Hash, f vfs.File, start, end int64) error {
	if start >= end {
		return nil
	}
	r := container.NewReader(f, start, end)
	for r.Left() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := r.Next(int(min(r.Left(), container.MaxNext)))
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		h.Write(b)
	}
	return nil
}

// Digest returns the sha256, in hexadecimal, of a tensor's bytes. It reads through buf, which is
// aligned as the file needs (vfs.File.Align); progress, unless nil, hears of the bytes that each
// read added.
func (c *Catalog) Digest(ctx context.Context, t *Tensor, buf []byte, progress func(n int64)) (string, error) {
	h := sha256.New()
	piece := make([]byte, 32<<10)
	for off := int64(0); off < t.Bytes; {
		pos, n := t.At(off)
		r, err := vfs.NewReader(c.Files[t.File].File, pos, n, buf)
		if err != nil {
			return "", err
		}
		for r.Left() > 0 {
			if err := ctx.Err(); err != nil {
				return "", err
			}
			n, err := r.Read(piece)
			if err != nil {
				return "", fmt.Errorf("tensor %s: %w", container.Name(t.Name), err)
			}
			h.Write(piece[:n])
			if progress != nil {
				progress(int64(n))
			}
		}
		off += n
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
