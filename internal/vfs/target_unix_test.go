//go:build unix

package vfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func aim(t *testing.T, path string) *Target {
	t.Helper()
	target, err := Aim(path)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func hello(w io.Writer) error {
	_, err := io.WriteString(w, "hello")
	return err
}

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A link stays and its target is replaced, whether that is there or not.
func TestWriteThroughLinks(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "old"), "old")
	for link, to := range map[string]string{"a": "old", "b": "new", "c": "b2", "b2": "other"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for link, real := range map[string]string{"a": "old", "b": "new", "c": "other"} {
		path := filepath.Join(dir, link)
		if err := aim(t, path).Write(hello); err != nil {
			t.Error(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more (%v)", link, err)
		}
		if got := contentOf(t, filepath.Join(dir, real)); got != "hello" {
			t.Errorf("%s holds %q", real, got)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "old")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the replaced file has the mode %v (%v)", info.Mode(), err)
	}
}

// A pipe is written, and stays one.
func TestWritePipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "p")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("skipped: no pipes here")
	}
	got := make(chan string, 1)
	go func() {
		b, _ := os.ReadFile(pipe)
		got <- string(b)
	}()
	if err := aim(t, pipe).Write(hello); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "hello" {
		t.Errorf("read %q", text)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("no pipe any more (%v)", err)
	}
}

// A folder is replaced only if all that it holds has names that are written.
func TestWriteFolder(t *testing.T) {
	dir := t.TempDir()
	names := []string{"x", "y"}
	fill := func(dir string) error { return os.WriteFile(filepath.Join(dir, "x"), []byte("new"), 0o666) }
	ours := filepath.Dir(put(t, filepath.Join(dir, "ours", "y"), "old"))
	link := filepath.Join(dir, "link")
	if err := os.Symlink("ours", link); err != nil {
		t.Fatal(err)
	}
	if err := aim(t, link).WriteFolder(names, fill); err != nil {
		t.Fatal(err)
	}
	if got := contentOf(t, filepath.Join(ours, "x")); got != "new" {
		t.Errorf("x holds %q", got)
	}
	if _, err := os.Stat(filepath.Join(ours, "y")); err == nil {
		t.Error("y is still there")
	}
	foreign := put(t, filepath.Join(dir, "theirs", "thesis"), "dear")
	if err := aim(t, filepath.Dir(foreign)).WriteFolder(names, fill); err == nil || contentOf(t, foreign) != "dear" {
		t.Errorf("replaced a folder with other files: %v", err)
	}
	if err := aim(t, foreign).WriteFolder(names, fill); err == nil || contentOf(t, foreign) != "dear" {
		t.Errorf("replaced a file by a folder: %v", err)
	}
	if err := aim(t, ours).Write(hello); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("replaced a folder by a file: %v", err)
	}
}

// Another name of the same file is found; a failed write leaves nothing, and names no temporary file.
func TestTargetErrors(t *testing.T) {
	dir := t.TempDir()
	model := put(t, filepath.Join(dir, "m"), "model")
	other := filepath.Join(dir, "hard")
	if err := os.Link(model, other); err != nil {
		t.Skip("skipped: no hard links here")
	}
	if same, ok := aim(t, other).Same("missing", model); !ok || same != model {
		t.Errorf("%q, %v", same, ok)
	}
	broken := errors.New("broken")
	err := aim(t, other).Write(func(w io.Writer) error { return errors.Join(hello(w), broken) })
	if !errors.Is(err, broken) || contentOf(t, other) != "model" {
		t.Errorf("%v", err)
	}
	err = aim(t, filepath.Join(dir, "none", "x")).Write(hello)
	if err == nil || strings.Contains(err.Error(), ".spillway") {
		t.Errorf("%v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("%v", entries)
	}
}

// What a sink wrote can be read by a drain.
func TestSinkAndDrain(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := strings.Repeat("0123456789", 350_000)
	s := NewSink(f)
	if n, err := s.Write([]byte(text)); n != len(text) || err != nil || s.Pending() != len(text)%sinkPiece {
		t.Errorf("%d, %v, %d pending", n, err, s.Pending())
	}
	got, err := io.ReadAll(NewDrain(f))
	if err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
