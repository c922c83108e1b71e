package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever a command does with a packed file that is damaged, it says what is wrong and exits with 4.
func TestDamagedPack(t *testing.T) {
	dir := t.TempDir()
	command := func(args ...string) (int, string) {
		t.Helper()
		s, out := testSession(t, nil)
		return s.main(append(args, "--memory", "100MiB")), out.String()
	}
	model, packed := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "m.spill")
	s, out := testSession(t, nil)
	if code := s.main([]string{"synth", "toy-moe", "--type", "q4_0", "--out", model}); code != 0 {
		t.Fatal(out)
	}
	if code, text := command("pack", model, "--out", packed); code != 0 {
		t.Fatal(text)
	}
	sound, err := os.ReadFile(packed)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		want   string
		verify bool // only verify sees it
	}{
		"cut":      {func(b []byte) []byte { return b[:len(b)/2] }, "its head says", false},
		"head":     {func(b []byte) []byte { b[30] ^= 1; return b }, "head: it is damaged", false},
		"manifest": {func(b []byte) []byte { b[5000] ^= 1; return b }, "manifest: it is damaged", false},
		"last":     {func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, `bundle 15 of "layer.3.experts": the bytes from`, false},
		"inside":   {func(b []byte) []byte { b[len(b)-300_000] ^= 1; return b }, `of "layer.3.experts": the bytes from`, true},
	} {
		path := filepath.Join(dir, name+".spill")
		if err := os.WriteFile(path, c.change(bytes.Clone(sound)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"verify", path}, {"inspect", path}, {"plan", path}, {"run", path, "hello", "--max-tokens", "1"}} {
			if c.verify && args[0] != "verify" {
				continue
			}
			if args[0] == "inspect" {
				s, out := testSession(t, nil)
				if code := s.main(args); code != exitFile || !strings.Contains(out.String(), c.want) {
					t.Errorf("%s, %s: exit code %d: %s", name, args[0], code, out)
				}
				continue
			}
			if code, text := command(args...); code != exitFile || !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("%s, %s: exit code %d: %s", name, args[0], code, text)
			}
		}
	}
}
