package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/spillway/spillway/internal/mem"
)

// defaultAlign is right for every drive where the file system does not say what it needs.
const defaultAlign = 4096

// cachedPiece bounds what a buffered read leaves in the page cache until it is dropped.
const cachedPiece = 256 << 10

// OS returns the operating system's files, opened for direct I/O where the file system allows it.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Stat(path string) (fs.FileInfo, error)      { return os.Stat(path) }
func (osFS) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }

// osFile is a file of the operating system. The system-specific parts are openFile, readOnce,
// setBuffered, refusesDirect, dropBehind and fileID.
type osFile struct {
	file  *os.File
	size  int64
	align int
	id    ID

	// sure: the file system itself said that it does direct I/O. Others may accept the flag and
	// use the page cache all the same, so the cache is dropped behind them.
	sure bool

	read func(file *os.File, p []byte, off int64) (int, error) // readOnce; tests cut it short

	fallback sync.Mutex
	why      atomic.Pointer[string] // nil while reads are direct
}

func (osFS) Open(path string) (File, error) {
	// Opening a pipe would wait for its writer.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	o, err := openFile(path)
	if err != nil {
		return nil, err
	}
	f := &osFile{file: o.file, align: o.align, sure: o.sure, read: readOnce}
	if o.why != "" {
		f.why.Store(&o.why)
	}
	info, err := o.file.Stat()
	if err == nil {
		f.size = info.Size()
		f.id, err = fileID(o.file, info)
	}
	if err == nil && f.Direct() && !f.sure {
		err = f.probe()
	}
	if err != nil {
		return nil, errors.Join(err, o.file.Close())
	}
	return f, nil
}

// Device tells the drive on which a file or folder lies from others, as ID.Dev does.
func Device(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	id, err := fileID(f, info)
	return id.Dev, err
}

// opened is what openFile returns.
type opened struct {
	file  *os.File
	align int
	sure  bool
	why   string // direct I/O was refused
}

// probe reads a block, so that a file system that refuses direct I/O only then has done so before
// anyone asks Direct.
func (f *osFile) probe() error {
	block := mem.AlignUp(make([]byte, 2*f.align), f.align)[:f.align]
	if _, err := f.ReadAt(block, 0); err != nil && err != io.EOF {
		return err
	}
	return nil
}

func (f *osFile) Size() int64  { return f.size }
func (f *osFile) Align() int   { return f.align }
func (f *osFile) Direct() bool { return f.why.Load() == nil }
func (f *osFile) Name() string { return f.file.Name() }
func (f *osFile) ID() ID       { return f.id }
func (f *osFile) Close() error { return f.file.Close() }

func (f *osFile) Why() string {
	if why := f.why.Load(); why != nil {
		return *why
	}
	return ""
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.checkAligned(p, off); err != nil {
		return 0, err
	}
	done := 0
	for done < len(p) {
		n, err := f.readSome(p[done:], off+int64(done))
		done += n
		switch {
		case err != nil:
			return done, fmt.Errorf("read %s at %d: %w", f.Name(), off+int64(done), bare(err))
		case n == 0 || off+int64(done) >= f.size && done < len(p):
			return done, io.EOF
		case done%f.align != 0 && f.Direct():
			if n < f.align {
				return done, io.EOF // twice cut short in one block: the file became shorter
			}
			// Only whole blocks can be asked for again.
			done -= done % f.align
		}
	}
	return done, nil
}

func (f *osFile) checkAligned(p []byte, off int64) error {
	if off < 0 || off%int64(f.align) != 0 || len(p)%f.align != 0 || !mem.IsAligned(p, f.align) {
		return fmt.Errorf("read %s: %d bytes at %d into %p are not aligned to %d", f.Name(), len(p), off, p, f.align)
	}
	return nil
}

// readSome makes one successful read call of at least one byte, or finds the end (0, nil).
func (f *osFile) readSome(p []byte, off int64) (int, error) {
	direct := f.Direct()
	if !direct {
		p = p[:min(len(p), cachedPiece)]
	}
	n, err := f.read(f.file, p, off)
	if err != nil && refusesDirect(err) && f.fallBack(direct, err) {
		return f.readSome(p, off)
	}
	if err != nil {
		return 0, err
	}
	count(n)
	if !direct || !f.sure {
		dropBehind(f.file, off, n)
	}
	return n, nil
}

// fallBack turns direct I/O off after a read that was tried with it (or not: direct) was refused. It
// reports whether to try again.
func (f *osFile) fallBack(direct bool, cause error) bool {
	f.fallback.Lock()
	defer f.fallback.Unlock()
	if !f.Direct() {
		return direct // another read did it meanwhile
	}
	if err := setBuffered(f.file); err != nil {
		return false
	}
	why := "the file system refuses direct reads (" + bare(cause).Error() + ")"
	f.why.Store(&why)
	return true
}

// control runs call with the descriptor, which stays open meanwhile.
func control(file *os.File, call func(fd uintptr) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if conn.Control(func(fd uintptr) { inner = call(fd) }) != nil {
		return os.ErrClosed // its only error
	}
	return inner
}

// bare takes the call and path off an error, as the caller names them better.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
