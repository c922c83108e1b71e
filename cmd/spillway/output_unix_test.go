//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// --out never replaces what is read, a folder, a link or a pipe.
func TestProbeOutSpares(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "m.gguf")
	s, out := testSession(t, nil)
	if code := s.main([]string{"synth", "smollm2-135m", "--type", "q4_0", "--layers", "1", "--context", "64", "--out", model}); code != exitFine {
		t.Fatal(out)
	}
	before, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink("m.gguf", link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Skip("skipped: ", err)
	}
	for path, want := range map[string]int{model: exitUsage, link: exitUsage, dir: exitFailed, filepath.Join(dir, "none", "x"): exitFailed} {
		s, out := testSession(t, nil)
		if code := s.main([]string{"probe", model, "--ids", "1", "--out", path}); code != want || strings.Contains(out.String(), ".spillway-") {
			t.Errorf("%s: exit code %d, want %d: %s", path, code, want, out)
		}
	}
	if after, err := os.ReadFile(model); err != nil || !bytes.Equal(before, after) {
		t.Fatalf("the model has changed (%v)", err)
	}
	got := make(chan int, 1)
	go func() {
		b, _ := os.ReadFile(pipe)
		got <- len(b)
	}()
	s, out = testSession(t, nil)
	if code := s.main([]string{"probe", model, "--ids", "1", "--taps", "all", "--out", pipe}); code != exitFine {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if n := <-got; n < 4*49152 {
		t.Errorf("%d bytes came through the pipe", n)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("no pipe any more (%v)", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".spillway-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// What cannot be printed is an error, and said once.
func TestFullDisk(t *testing.T) {
	for _, args := range []string{"verify storyteller --identity", "plan storyteller", "probe storyteller --taps list", "version"} {
		s, out := testSession(t, nil)
		s.stdout = fullDisk{}
		code := s.main(append(strings.Fields(args), "--quiet"))
		if text := syscall.ENOSPC.Error(); code != exitFailed || strings.Count(out.String(), text) != 1 {
			t.Errorf("%s: exit code %d: %s", args, code, out)
		}
	}
}

// SIGTERM while a file is written removes the temporary one; what was there stays.
func TestTerminate(t *testing.T) {
	dir := t.TempDir()
	s, out := testSession(t, nil)
	go func() {
		for {
			if parts, _ := filepath.Glob(filepath.Join(dir, ".spillway-*")); len(parts) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}()
	if code := s.main([]string{"synth", "tinyllama-1.1b", "--type", "f16", "--out", filepath.Join(dir, "m.gguf")}); code != exitTerminated {
		t.Errorf("exit code %d, want %d: %s", code, exitTerminated, out)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A signal ends plan at once, whatever it is doing.
func TestInterruptPlan(t *testing.T) {
	s, _ := testSession(t, nil)
	block := make(chan struct{})
	defer close(block)
	s.stdout = writerFunc(func(p []byte) (int, error) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
		<-block
		return len(p), nil
	})
	if code := s.main([]string{"plan", "storyteller", "--memory", "128MiB"}); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// The names of taps are JSON where JSON is wanted.
func TestTapListJSON(t *testing.T) {
	s, out := testSession(t, nil)
	if code := s.main([]string{"probe", "storyteller", "--taps", "list", "--json"}); code != exitFine {
		t.Fatal(out)
	}
	var list tapList
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list.Taps) < 3 {
		t.Errorf("%v: %s", err, out)
	}
}
