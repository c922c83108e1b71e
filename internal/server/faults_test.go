package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/server/servertest"
	"github.com/spillway/spillway/internal/vfs"
	"github.com/spillway/spillway/internal/vfs/vfstest"
)

// failing are files whose reads fail while they are switched on.
func failing() *vfstest.Switched { return vfstest.NewSwitched(vfs.Plan{FailRead: 1, FailFor: 1 << 60}) }

// streaming starts a server with a model that streams its weights, and says where its file is.
func streaming(t *testing.T, fs vfs.FS) (s *servertest.Server, path string) {
	t.Helper()
	return servertest.Streaming(t, servertest.Options{Files: fs, Mount: mount})
}

const toyStory = `{"model":"toy","prompt":"5 6 7 8 9","tokens":%d}`

// A drive that fails in the midst of sweeps ends answers with an error that says so, and not where the file is; the
// server says that the model is not to be relied on, and answers again once the drive does.
func TestDriveFails(t *testing.T) {
	fs := failing()
	s, path := streaming(t, fs)
	status, _, want := s.Do("POST", "/test/story", fmt.Sprintf(toyStory, 8))
	if status != 200 {
		t.Fatalf("%d %s", status, want)
	}
	ready(t, s, 200, "ok")
	fs.On.Store(true)
	for range 3 {
		status, _, text := s.Do("POST", "/test/story", fmt.Sprintf(toyStory, 8))
		if status != 500 || !strings.Contains(text, "the weights of the model toy could not be read") || strings.Contains(text, filepath.Dir(path)) {
			t.Errorf("%d %s", status, text)
		}
	}
	ready(t, s, 503, `"toy":"the last 3 tries to read its weights failed"`)
	if state, _ := s.Models.Find("toy"); state.Failed != 3 {
		t.Errorf("%d failures", state.Failed)
	}
	fs.On.Store(false)
	if status, _, got := s.Do("POST", "/test/story", fmt.Sprintf(toyStory, 8)); status != 200 || got != want {
		t.Errorf("%d %s, before the faults %s", status, got, want)
	}
	ready(t, s, 200, "ok")
}

func ready(t *testing.T, s *servertest.Server, want int, text string) {
	t.Helper()
	if status, _, got := s.Do("GET", "/ready", ""); status != want || !strings.Contains(got, text) {
		t.Errorf("ready: %d %s, want %d %s", status, got, want, text)
	}
	if status, _, got := s.Do("GET", "/health", ""); status != 200 {
		t.Errorf("health: %d %s", status, got)
	}
}

// A file that is cut or written over while it is served is no reason to change the type of the cache.
func TestFileChanges(t *testing.T) {
	for name, damage := range map[string]func(f *os.File) error{
		"cut": func(f *os.File) error { return f.Truncate(1 << 20) },
		"written over": func(f *os.File) error {
			all := make([]byte, 12<<20) // as halves these are not finite
			for i := range all {
				all[i] = 0x7c
			}
			_, err := f.WriteAt(all, 1<<20)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, path := streaming(t, nil)
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(damage(f), f.Close()); err != nil {
				t.Fatal(err)
			}
			ready(t, s, 503, `"toy":"its file has been written to since it was loaded"`)
			status, _, text := s.Do("POST", "/test/story", fmt.Sprintf(toyStory, 8))
			if status != 500 || !strings.Contains(text, "was written to while it was served") || strings.Contains(text, filepath.Dir(path)) || strings.Contains(text, "--kv") {
				t.Errorf("%d %s", status, text)
			}
		})
	}
}

// A model that cannot be loaded says so without the path of its file.
func TestLoadFails(t *testing.T) {
	fs := failing()
	s, path := streaming(t, fs)
	if err := s.Models.Unload(t.Context(), "toy"); err != nil {
		t.Fatal(err)
	}
	fs.On.Store(true)
	var e struct{ Test string }
	for range 3 {
		status, _, text := s.Do("POST", "/test/story", fmt.Sprintf(toyStory, 2))
		if err := json.Unmarshal([]byte(text), &e); err != nil || status != 500 || !strings.Contains(e.Test, "the model toy could not be loaded") || strings.Contains(text, filepath.Dir(path)) {
			t.Errorf("%d %s %v", status, text, err)
		}
	}
	ready(t, s, 503, "toy")
}
