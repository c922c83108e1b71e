package main

import (
	"path/filepath"
	"testing"
)

// Scripts tell by the exit code whose fault it is.
func TestGrammarExitCodes(t *testing.T) {
	dir := t.TempDir()
	number := writeFile(t, filepath.Join(dir, "number.json"), `{"type": "number"}`)
	damaged := writeFile(t, filepath.Join(dir, "damaged.json"), `{"type": 5}`)
	behind := writeFile(t, filepath.Join(dir, "behind.json"), `{"pattern": "(?<!a)"}`)
	regex := writeFile(t, filepath.Join(dir, "regex"), "(")
	five := writeFile(t, filepath.Join(dir, "five.json"), "5")
	text := writeFile(t, filepath.Join(dir, "text.json"), `"5"`)
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{number, five}, exitFine},
		{[]string{number, text}, exitFailed},
		{[]string{number, filepath.Join(dir, "missing")}, exitFailed},
		{[]string{filepath.Join(dir, "missing"), five}, exitFailed},
		{[]string{number, five, "--kind", "what"}, exitUsage},
		{[]string{"-", "-"}, exitUsage},
		{[]string{damaged, five}, exitFile},
		{[]string{behind, text}, exitFile},
		{[]string{regex, text, "--kind", "regex"}, exitFile},
	} {
		s, out := testSession(t, nil)
		if code := s.main(append([]string{"grammar", "check"}, c.args...)); code != c.want {
			t.Errorf("%q: exit code %d, want %d: %s", c.args, code, c.want, out)
		}
	}
}
