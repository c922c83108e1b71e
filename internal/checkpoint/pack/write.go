package pack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/vfs"
)

// Part is bytes of an original and where they go.
type Part struct {
	At     int64 // in the packed file
	File   vfs.File
	Offset int64 // in File
	Bytes  int64
}

// Job is what Write does.
type Job struct {
	Path     string
	Manifest Manifest // as Place made it
	Parts    []Part   // in the order of At, without overlaps; what they leave is zero
	Memory   []byte   // WriteMemory(align of the parts' files) bytes, aligned as they need
	Force    bool     // replace what is at Path, and what another pack has begun
	Batch    int64    // bytes between two points to which an interrupted job can return; 0 is 64 MiB
	// Progress, unless nil, hears how many bytes of how many are written.
	Progress func(done, total int64)
}

// A Result says what Write did.
type Result struct {
	Path    string
	Bytes   int64 // of the file
	Resumed int64 // bytes of it that an earlier, interrupted command had written
}

// queue is how many pieces are read ahead of what is written.
const queue = 3

// WriteMemory is how much memory a job needs.
func WriteMemory(align int) int { return (queue+2)*PieceBytes + PieceBytes + 2*align }

const (
	defaultBatch = 64 << 20
	// spare is what stays free on the drive.
	spare = 16 << 20
)

// Partial is the name that a file has until it is complete.
func Partial(path string) string { return path + ".partial" }

// Place sets Offsets of groups whose other fields are set, so that they follow each other after manifest and
// digests. Inner and Tensors are shifted along: their offsets count from the first group's start.
func (m *Manifest) Place() {
	h := head{manifest: int64(len(m.encode())), pieces: m.Pieces()}
	start := h.dataStart()
	at := start
	for i := range m.Groups {
		m.Groups[i].Offset = at
		at = m.Groups[i].End()
	}
	for i := range m.Inner {
		m.Inner[i].Offset += start
	}
	for i := range m.Tensors {
		m.Tensors[i].Offset += start
	}
}

// Write packs. It goes to a file beside Path that gets its name when it is complete; a job that was interrupted,
// by whatever, is continued by the same job.
func Write(ctx context.Context, j Job) (r Result, err error) {
	w, err := j.open()
	if err != nil {
		return Result{}, err
	}
	defer func() {
		if w.file != nil {
			err = errors.Join(err, w.file.Close())
		}
	}()
	r = Result{Path: j.Path, Bytes: w.head.size, Resumed: w.done}
	if err := w.copy(ctx); err != nil {
		return r, w.named(err)
	}
	return r, w.named(w.finish())
}

// writer is a job under way.
type writer struct {
	Job
	head     head
	manifest []byte
	file     *os.File
	sink     *vfs.Sink
	next     int64 // piece to be written
	done     int64 // bytes of pieces before
}

// named makes errors speak of where the output goes.
func (w *writer) named(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("packing to %s: %w", w.Path, err)
}

// open makes the partial file, or finds the one of an interrupted job.
func (j *Job) open() (*writer, error) {
	w := &writer{Job: *j, manifest: j.Manifest.encode()}
	if w.Progress == nil {
		w.Progress = func(int64, int64) {}
	}
	if w.Batch <= 0 {
		w.Batch = defaultBatch
	}
	if len(w.manifest) > maxManifest {
		return nil, fmt.Errorf("a list of %d bytes of what the model holds is too long to pack it", len(w.manifest))
	}
	w.head = head{size: j.Manifest.Size(), manifest: int64(len(w.manifest)), pieces: j.Manifest.Pieces(), digest: sha256.Sum256(w.manifest)}
	if info, err := os.Stat(j.Path); err == nil && (!j.Force || !info.Mode().IsRegular()) {
		if info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is there already; --force replaces it", j.Path)
		}
		return nil, fmt.Errorf("%s is no file that could be replaced", j.Path)
	}
	if err := w.begin(); err != nil {
		if w.file != nil {
			err = errors.Join(err, w.file.Close())
		}
		return nil, err
	}
	return w, nil
}

// begin opens the partial file and reserves its space.
func (w *writer) begin() error {
	path := Partial(w.Path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		if err := w.checkSpace(0); err != nil {
			return err
		}
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	}
	if err != nil {
		return err
	}
	w.file, w.sink = f, vfs.NewSink(f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !fresh {
		known, err := w.resume()
		if err != nil {
			return err
		}
		if err := w.checkSpace(vfs.SpaceUsed(info)); err != nil {
			return err
		}
		if known {
			return vfs.Allocate(f, w.head.size)
		}
	}
	return w.start(fresh)
}

// checkSpace refuses to begin what the drive has no room for.
func (w *writer) checkSpace(used int64) error {
	dir := filepath.Dir(w.Path)
	free, ok := machine.FreeDisk(dir)
	if need := max(w.head.size-used, 0) + spare; ok && free < need {
		return fmt.Errorf("%s needs %d MiB more, and %s has only %d MiB free", w.Path, need>>20, dir, free>>20)
	}
	return nil
}

// start writes all but the bundles. The head comes last: before it, the file is none that could be continued.
func (w *writer) start(fresh bool) error {
	if !fresh {
		if err := w.file.Truncate(0); err != nil {
			return err
		}
	}
	if err := vfs.Allocate(w.file, w.head.size); err != nil {
		if fresh {
			err = errors.Join(err, os.Remove(w.file.Name()))
		}
		return err
	}
	if _, err := w.file.WriteAt(w.manifest, headBytes); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	if _, err := w.file.WriteAt(w.head.encode(), 0); err != nil {
		return err
	}
	return w.file.Sync()
}

// resume finds out what an interrupted job has written; false if it never began. One of another model or layout
// is an error unless Force is set.
func (w *writer) resume() (known bool, err error) {
	first := make([]byte, headBytes)
	n, err := w.file.ReadAt(first, 0)
	if err != nil && err != io.EOF {
		return false, err
	}
	if n < headBytes || len(bytes.Trim(first, "\x00")) == 0 {
		return false, nil
	}
	old, err := decodeHead(first)
	mine := w.head
	old.complete, old.table = false, mine.table
	if err != nil || old != mine {
		if w.Force {
			return false, nil
		}
		return false, fmt.Errorf("%s is of another model, or of another version of this one: --force begins anew, or remove it", w.file.Name())
	}
	return true, w.written()
}

// written counts the pieces that have a digest, from the first on.
func (w *writer) written() error {
	zero := make([]byte, digestSize)
	b := make([]byte, 512*digestSize)
	for w.next < w.head.pieces {
		n := min(w.head.pieces-w.next, 512)
		b = b[:n*digestSize]
		if _, err := w.file.ReadAt(b, w.head.tableStart()+w.next*digestSize); err != nil {
			return err
		}
		for i := range n {
			if bytes.Equal(b[i*digestSize:][:digestSize], zero) {
				return nil
			}
			w.done += w.Manifest.Piece(w.next).Bytes
			w.next++
		}
	}
	return nil
}

// copy writes the pieces that are missing. Digests of a batch are written when its bytes have reached the drive.
func (w *writer) copy(ctx context.Context) error {
	if w.next == w.head.pieces {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	in := w.read(ctx)
	defer func() { // the memory is the caller's again when nothing is read any more
		stop()
		for range in.full {
		}
	}()
	total := w.head.size - w.Manifest.DataStart()
	if _, err := w.file.Seek(w.Manifest.Piece(w.next).Offset, io.SeekStart); err != nil {
		return err
	}
	var sums []byte
	pending := int64(0)
	for x := range in.full {
		if x.err != nil {
			return errors.Join(x.err, w.settle(sums))
		}
		sum := sha256.Sum256(x.b)
		if _, err := w.sink.Write(x.b); err != nil {
			return errors.Join(err, w.settle(sums))
		}
		sums, pending = append(sums, sum[:]...), pending+int64(len(x.b))
		w.done += int64(len(x.b))
		in.free <- x.b[:PieceBytes]
		w.Progress(w.done, total)
		if pending >= w.Batch {
			if err := w.settle(sums); err != nil {
				return err
			}
			sums, pending = sums[:0], 0
		}
	}
	return errors.Join(w.settle(sums), ctx.Err())
}

// settle makes what was written durable, then its digests.
func (w *writer) settle(sums []byte) error {
	if len(sums) == 0 {
		return nil
	}
	w.sink.Flush()
	if err := w.file.Sync(); err != nil {
		return err
	}
	_, err := w.file.WriteAt(sums, w.head.tableStart()+w.next*digestSize)
	w.next += int64(len(sums) / digestSize)
	return err
}

// finish seals the file and gives it its name.
func (w *writer) finish() error {
	sum := sha256.New()
	b := make([]byte, 64<<10)
	for at, end := w.head.tableStart(), w.head.tableStart()+w.head.pieces*digestSize; at < end; {
		n := min(int64(len(b)), end-at)
		if _, err := w.file.ReadAt(b[:n], at); err != nil {
			return err
		}
		sum.Write(b[:n])
		at += n
	}
	w.head.complete = true
	sum.Sum(w.head.table[:0])
	if err := w.file.Sync(); err != nil {
		return err
	}
	if _, err := w.file.WriteAt(w.head.encode(), 0); err != nil {
		return err
	}
	w.sink.Flush()
	if err := errors.Join(w.file.Sync(), w.file.Close()); err != nil {
		return err
	}
	name := w.file.Name()
	w.file = nil
	return os.Rename(name, w.Path)
}
