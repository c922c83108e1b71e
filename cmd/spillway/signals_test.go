//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// interrupter sends SIGINT to this process when the first part of an answer is written.
type interrupter struct {
	t    *testing.T
	text strings.Builder
}

func (w *interrupter) Write(p []byte) (int, error) {
	if w.text.Len() == 0 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			w.t.Error(err)
		}
	}
	return w.text.Write(p)
}

// SIGINT ends the answer after the token that is computed, reports, and exits 130. The model has
// random weights and does not stop by itself within its thousands of tokens.
func TestInterrupt(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m.gguf")
	s, out := testSession(t, nil)
	if code := s.main([]string{"synth", "smollm2-135m", "--type", "q4_0", "--layers", "1", "--out", model}); code != exitFine {
		t.Fatal(out)
	}
	s, out = testSession(t, nil)
	answer := &interrupter{t: t}
	s.stdout = answer
	code := s.main([]string{"run", model, "hello", "--raw", "--temperature", "0", "--max-tokens", "8000"})
	if code != exitInterrupted {
		t.Errorf("exit code %d, want %d: %s", code, exitInterrupted, out)
	}
	if !strings.Contains(out.String(), ", interrupted\n") || !strings.Contains(out.String(), "\nmemory: ") {
		t.Errorf("no report: %s", out)
	}
	if !strings.HasSuffix(answer.text.String(), "\n") {
		t.Errorf("the answer does not end its line: %q", answer.text.String())
	}
}
