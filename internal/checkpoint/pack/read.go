package pack

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/vfs"
)

// File is an open packed file. Its methods may be called concurrently.
type File struct {
	Manifest
	head head
	f    vfs.File
}

const again = "pack the model again"

// fail is an error about something in the file.
func fail(f vfs.File, where, hint, format string, args ...any) error {
	return &container.Error{Path: f.Name(), Where: where, What: fmt.Sprintf(format, args...), Hint: hint}
}

// wrap makes an error of what reading returned: faults of the drive stay what they are.
func wrap(f vfs.File, where string, err error) error {
	var ours *container.Error
	var drive *container.ReadError
	switch {
	case err == nil, errors.As(err, &ours):
		return err
	case errors.As(err, &drive):
		return fmt.Errorf("%s: %w", f.Name(), err)
	case container.Truncated(err):
		return fail(f, where, again, "it ends too early")
	}
	return fail(f, where, again, "%v", err)
}

// Read reads and checks everything but what the bundles hold, of which Sample looks at a part. Files that are
// damaged, not complete or not supported give a *container.Error.
func Read(f vfs.File) (*File, *container.Header, error) {
	h, err := readHead(f)
	if err != nil {
		return nil, nil, err
	}
	if err := h.check(f); err != nil {
		return nil, nil, err
	}
	p := &File{head: h, f: f}
	if err := p.readManifest(); err != nil {
		return nil, nil, err
	}
	meta, err := p.metadata()
	if err != nil {
		return nil, nil, err
	}
	return p, &container.Header{
		Version: meta.Version, Alignment: Align, DataStart: headBytes + h.manifest, Meta: meta.Meta, Tensors: p.Tensors,
	}, nil
}

func readHead(f vfs.File) (head, error) {
	if f.Size() < headBytes {
		return head{}, fail(f, "", again, "it has only %d bytes, less than the head of a packed file", f.Size())
	}
	b, err := container.NewReader(f, 0, headBytes).Next(headBytes)
	if err != nil {
		return head{}, wrap(f, "head", err)
	}
	h, err := decodeHead(b)
	return h, wrap(f, "head", err)
}

// check compares the head with the file and with the digest table.
func (h *head) check(f vfs.File) error {
	switch {
	case !h.complete:
		return fail(f, "", "the same pack command continues it", "packing was interrupted: it is not complete")
	case h.size != f.Size():
		return fail(f, "", again, "it has %d bytes, its head says %d", f.Size(), h.size)
	case h.dataStart() > h.size:
		return fail(f, "head", again, "manifest and digests would end at %d, the file at %d", h.dataStart(), h.size)
	}
	sum := sha256.New()
	r := container.NewReader(f, h.tableStart(), h.tableStart()+h.pieces*digestSize)
	for r.Left() > 0 {
		b, err := r.Next(int(min(r.Left(), container.MaxNext)))
		if err != nil {
			return wrap(f, "digests", err)
		}
		sum.Write(b)
	}
	if !bytes.Equal(sum.Sum(nil), h.table[:]) {
		return fail(f, "digests", again, "the list of digests at byte %d is damaged", h.tableStart())
	}
	return nil
}

// reader is one pass over the manifest. It stops at the first error, which it keeps.
type reader struct {
	*container.Reader
	err error
}

func (r *reader) number() int64 {
	if r.err != nil {
		return 0
	}
	n, err := r.Uint64()
	if err == nil && n > math.MaxInt64 {
		err = fmt.Errorf("%d is too large", n)
	}
	r.err = err
	return int64(n)
}

// count reads the length of a list whose entries take at least so many bytes each.
func (r *reader) count(what string, most, each int) int {
	if r.err != nil {
		return 0
	}
	n, err := r.Uint32()
	if err == nil && (int64(n) > r.Left()/int64(each) || int64(n) > int64(most)) {
		err = fmt.Errorf("%d %s are more than it has room for", n, what)
	}
	if r.err = err; err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count("bytes of a name", maxName, 1)
	if r.err != nil {
		return ""
	}
	var b []byte
	b, r.err = r.Append(nil, n)
	return string(b)
}

// readManifest reads the manifest and checks that it fits together.
func (p *File) readManifest() error {
	sum := sha256.New()
	check := container.NewReader(p.f, headBytes, headBytes+p.head.manifest)
	for check.Left() > 0 {
		b, err := check.Next(int(min(check.Left(), container.MaxNext)))
		if err != nil {
			return wrap(p.f, "manifest", err)
		}
		sum.Write(b)
	}
	if !bytes.Equal(sum.Sum(nil), p.head.digest[:]) {
		return fail(p.f, "manifest", again, "it is damaged: its digest is another one")
	}
	r := &reader{Reader: container.NewReader(p.f, headBytes, headBytes+p.head.manifest)}
	r.manifest(&p.Manifest)
	if r.err == nil && r.Left() > 0 {
		r.err = fmt.Errorf("%d bytes are left over", r.Left())
	}
	if r.err == nil {
		r.err = p.check()
	}
	return wrap(p.f, "manifest", r.err)
}

func (r *reader) manifest(m *Manifest) {
	m.Format, m.Identity = r.text(), r.text()
	if r.err == nil && m.Format != formatGGUF && m.Format != formatSafetensors {
		r.err = fmt.Errorf("the format of the original, %s, is not supported", container.Name(m.Format))
	}
	n := r.count("files", maxFiles, 20)
	for range n {
		if r.err != nil {
			return
		}
		m.Inner = append(m.Inner, Inner{r.text(), r.number(), r.number()})
	}
	n = r.count("groups", maxGroups, 28)
	m.Groups = make([]Group, 0, min(n, firstAlloc))
	for range n {
		if r.err != nil {
			return
		}
		g := Group{Name: r.text(), Offset: r.number(), Bytes: r.number()}
		count := r.number()
		if g.Count = int(count); count > math.MaxInt32 {
			r.err = fmt.Errorf("group %s has %d bundles", container.Name(g.Name), count)
		}
		m.Groups = append(m.Groups, g)
	}
	n = r.count("tensors", maxTensors, 36)
	m.Tensors = make([]container.Tensor, 0, min(n, firstAlloc))
	for range n {
		if r.err != nil {
			return
		}
		m.Tensors = append(m.Tensors, r.tensor(m.Format))
	}
}

func (r *reader) tensor(format string) (t container.Tensor) {
	t.Name = r.text()
	if format == formatGGUF {
		if r.err == nil {
			var kind uint32
			kind, r.err = r.Uint32()
			t.Type = quantType(kind)
		}
	} else {
		t.DType = r.text()
	}
	t.Shape = make([]int, r.count("dimensions", maxDims, 8))
	for i := range t.Shape {
		t.Shape[i] = int(r.number())
	}
	t.Offset, t.Slice, t.Stride = r.number(), r.number(), r.number()
	if r.err != nil {
		return t
	}
	err := error(nil)
	if format == formatGGUF {
		err = gguf.Measure(&t)
	} else {
		err = safetensors.Measure(&t)
	}
	if err != nil {
		r.err = fmt.Errorf("tensor %s: %w", container.Name(t.Name), err)
	}
	return t
}

// metadata reads what the original says about itself.
func (p *File) metadata() (*container.Header, error) {
	s := p.section(&p.Inner[0])
	read := gguf.Read
	if p.Format == formatSafetensors {
		read = safetensors.Read
	}
	h, err := read(s)
	if err == nil && len(h.Tensors) > 0 {
		err = fail(p.f, p.Inner[0].Name, again, "it holds tensors")
	}
	return h, err
}
