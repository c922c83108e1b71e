package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Target is where an output goes. A file or folder gets its name when it is complete; a symbolic
// link stays, and what it points at is replaced; a device, a pipe and our own standard output are
// written as they are.
type Target struct {
	path string      // as it was given
	real string      // behind symbolic links
	info fs.FileInfo // nil if nothing is there
}

// Aim looks at what is at the path. It changes nothing.
func Aim(path string) (*Target, error) {
	t := &Target{path: path, real: filepath.Clean(path)}
	info, err := os.Stat(path)
	switch {
	case err == nil:
		t.info = info
		if real, err := filepath.EvalSymlinks(path); err == nil {
			t.real = real
		}
		return t, nil
	case strings.HasSuffix(path, "/") || !errors.Is(err, fs.ErrNotExist):
		if info, e := os.Stat(t.real); e == nil {
			return nil, fmt.Errorf("%s: %s is %s, not a folder", path, t.real, kindOf(info))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", path, bare(err))
		}
	}
	t.real, err = dangling(t.real)
	return t, err
}

// dangling follows links that lead to nothing yet.
func dangling(path string) (string, error) {
	const most = 40 // as the kernel
	for range most {
		next, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}

// Exists reports whether something is there that would be replaced.
func (t *Target) Exists() bool { return t.info != nil && !t.Stream() }

// Stream reports whether the target is written as it is, and is not replaced.
func (t *Target) Stream() bool {
	return t.info != nil && !t.info.IsDir() && (!t.info.Mode().IsRegular() || t.isStdout())
}

func (t *Target) isStdout() bool {
	info, err := os.Stdout.Stat()
	return err == nil && os.SameFile(info, t.info)
}

// Dir is the folder in which the output will lie.
func (t *Target) Dir() string { return filepath.Dir(t.real) }

// Same returns the first of the paths that is the same file as the target, by whatever name.
func (t *Target) Same(paths ...string) (string, bool) {
	if t.info == nil {
		return "", false
	}
	i := slices.IndexFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && os.SameFile(info, t.info)
	})
	if i < 0 {
		return "", false
	}
	return paths[i], true
}

// CheckFile says why Write cannot put a file there.
func (t *Target) CheckFile() error {
	if t.info != nil && t.info.IsDir() {
		return fmt.Errorf("%s is a folder, not a file", t.path)
	}
	return nil
}

// CheckFolder says why WriteFolder, for files of these names, cannot put a folder there: it replaces
// no folder that holds anything else.
func (t *Target) CheckFolder(names []string) error {
	if t.info == nil {
		return nil
	}
	if !t.info.IsDir() {
		return fmt.Errorf("%s is %s, not a folder", t.path, kindOf(t.info))
	}
	entries, err := os.ReadDir(t.real)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) || !e.Type().IsRegular() {
			return fmt.Errorf("%s holds %q, which is none of ours: it is not replaced; another path would do", t.path, e.Name())
		}
	}
	return nil
}

func kindOf(info fs.FileInfo) string {
	if info.Mode().IsRegular() {
		return "a file"
	}
	return "no file or folder"
}

// Write makes the file: under a name of its own in the same folder until it is complete. What is
// written stays out of the page cache.
func (t *Target) Write(write func(io.Writer) error) error {
	if t.Stream() && t.isStdout() {
		return t.wrap(write(os.Stdout), "")
	}
	d, err := t.Create()
	if err != nil {
		return err
	}
	if err := write(d); err != nil {
		return t.wrap(errors.Join(err, d.Discard()), d.file.Name())
	}
	return d.Commit()
}

// A Draft is a file that gets its name when it is complete. Where the target is a stream it is written as it is.
type Draft struct {
	*Sink
	target *Target
	stream bool
	file   *os.File
}

// Create begins a file. Commit or Discard ends it.
func (t *Target) Create() (*Draft, error) {
	if err := t.CheckFile(); err != nil {
		return nil, err
	}
	d := &Draft{target: t, stream: t.Stream()}
	var err error
	if d.stream {
		d.file, err = os.OpenFile(t.path, os.O_WRONLY, 0)
	} else {
		d.file, err = os.CreateTemp(t.Dir(), ".spillway-*")
	}
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", t.path, bare(err))
	}
	d.Sink = NewSink(d.file)
	return d, nil
}

// Commit ends a file that is complete.
func (d *Draft) Commit() error {
	if d.stream {
		return d.target.wrap(d.file.Close(), "")
	}
	d.Flush()
	err := errors.Join(d.file.Chmod(d.target.mode()), d.file.Sync(), d.file.Close())
	if err == nil {
		err = os.Rename(d.file.Name(), d.target.real)
	}
	if err != nil {
		return d.target.wrap(errors.Join(err, os.Remove(d.file.Name())), d.file.Name())
	}
	return nil
}

// Discard ends a file that nobody wants; what was there before stays.
func (d *Draft) Discard() error {
	err := d.file.Close()
	if !d.stream {
		err = errors.Join(err, os.Remove(d.file.Name()))
	}
	return err
}

// mode is that of what is replaced.
func (t *Target) mode() fs.FileMode {
	if t.info != nil {
		return t.info.Mode().Perm()
	}
	return 0o644
}

// WriteFolder makes a folder of files with some of these names: under a name of its own until it is
// complete.
func (t *Target) WriteFolder(names []string, write func(dir string) error) error {
	if err := t.CheckFolder(names); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(t.Dir(), ".spillway-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", t.path, bare(err))
	}
	if err = os.Chmod(dir, 0o755); err == nil {
		err = write(dir)
	}
	if err == nil {
		err = t.replaceFolder(dir, names)
	}
	if err != nil {
		return t.wrap(errors.Join(err, os.RemoveAll(dir)), dir)
	}
	return nil
}

// replaceFolder removes the files that were checked, by their names, and the folder only if it is
// empty then.
func (t *Target) replaceFolder(dir string, names []string) error {
	if t.info == nil {
		return os.Rename(dir, t.real)
	}
	if err := t.CheckFolder(names); err != nil { // again: writing takes time
		return err
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(t.real, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(t.real); err != nil {
		return err
	}
	return os.Rename(dir, t.real)
}

// A writeError speaks of the target where the error behind it speaks of a temporary name.
type writeError struct {
	text  string
	cause error
}

func (e *writeError) Error() string { return e.text }
func (e *writeError) Unwrap() error { return e.cause }

func (t *Target) wrap(err error, temp string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if temp != "" {
		text = strings.ReplaceAll(text, temp, t.path)
	}
	return &writeError{"writing " + t.path + ": " + text, err}
}
