package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/testutil"
)

// A prompt for which there is no room is refused while it is read, all of it is counted, and the
// amount that would do does.
func TestPromptLease(t *testing.T) {
	const length = 4 << 20
	read := func(memory int64) (string, error) {
		rt, err := spillway.New(spillway.Options{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		lease := newTextLease(rt)
		text, err := readText(strings.NewReader(strings.Repeat("x", length)+"\n"), lease)
		if used := rt.Ledger().Used; err == nil && used < (length-freeText)*spillway.PromptCost {
			t.Errorf("%d bytes are leased for %d of text", used, length)
		}
		lease.release()
		if used := rt.Ledger().Used; used != 0 {
			t.Errorf("%d bytes stay leased", used)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		return text, err
	}
	_, err := read(64 << 20)
	m := regexp.MustCompile(`^64 MiB is too little memory for a prompt of 4 MiB: it needs at least (\d+) MiB$`).FindStringSubmatch(errorText(err))
	if exitCode(err) != exitMemory || m == nil {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
	least, _ := strconv.ParseInt(m[1], 10, 64)
	if least<<20 < length*spillway.PromptCost {
		t.Errorf("%d MiB are said to do", least)
	}
	if text, err := read((least + 2) << 20); err != nil || len(text) != length {
		t.Errorf("with %d MiB: %d bytes, %v", least+2, len(text), err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Every space may become three bytes.
func TestPromptOfSpaces(t *testing.T) {
	rt, err := spillway.New(spillway.Options{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	lease := newTextLease(rt)
	defer lease.release()
	if _, err := readText(strings.NewReader(strings.Repeat(" ", 1<<20)), lease); err != nil || lease.covered < 3<<20 {
		t.Errorf("%d bytes are leased for, %v", lease.covered, err)
	}
}

func TestReadText(t *testing.T) {
	rt, err := spillway.New(spillway.Options{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		r    io.Reader
		want string
		err  error
	}{
		"line":      {strings.NewReader("a\r\n"), "a", nil},
		"two lines": {strings.NewReader("a\n\n"), "a\n", nil},
		"pieces":    {iotest.HalfReader(strings.NewReader(strings.Repeat("y", 3*readPiece))), strings.Repeat("y", 3*readPiece), nil},
		"exact":     {strings.NewReader(strings.Repeat("y", readPiece)), strings.Repeat("y", readPiece), nil},
		"error":     {iotest.ErrReader(broken), "", broken},
		"too long":  {strings.NewReader(strings.Repeat("y", maxPrompt+1)), "", errLongPrompt},
	} {
		lease := newTextLease(rt)
		if got, err := readText(c.r, lease); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		lease.release()
	}
}

// cutter cuts the end of a file off when the first part of an answer is written.
type cutter struct {
	t    *testing.T
	path string
	text strings.Builder
}

func (w *cutter) Write(p []byte) (int, error) {
	if w.text.Len() == 0 {
		w.cut()
	}
	return w.text.Write(p)
}

func (w *cutter) cut() {
	if err := os.Truncate(w.path, 1<<20); err != nil {
		w.t.Error(err)
	}
}

// An answer that fails midway ends its line and is reported, with exit code 1; here the file loses its
// end, under a budget that keeps little of it in memory.
func TestBrokenAnswer(t *testing.T) {
	for _, json := range []bool{false, true} {
		model := filepath.Join(t.TempDir(), "m.gguf")
		s, out := testSession(t, nil)
		if code := s.main([]string{"synth", "smollm2-135m", "--type", "q8_0", "--layers", "2", "--out", model}); code != exitFine {
			t.Fatal(out)
		}
		s, out = testSession(t, nil)
		answer := &cutter{t: t, path: model}
		s.stdout, s.flags = answer, globals{Memory: "1GiB", JSON: json}
		m, o, err := s.startAt(t.Context(), modelPath(model), 0, spillway.ModelOptions{Context: 512})
		if err != nil {
			t.Fatal(err)
		}
		if json {
			answer.cut() // nothing is printed before the end
		}
		err = generateAndReport(t.Context(), s, o, m, spillway.Request{IDs: []int32{1, 2, 3}, MaxTokens: 400, Sampling: &spillway.Sampling{}, IgnoreEnd: true}, heldForm{})
		if err = o.close(err); exitCode(err) != exitFailed || !strings.Contains(errorText(err), "the answer ended after ") {
			t.Errorf("exit code %d: %v", exitCode(err), err)
		}
		text := answer.text.String()
		if json && (!strings.Contains(text, `"finish_reason":"error"`) || !strings.Contains(text, `"memory":{"budget":`)) {
			t.Errorf("printed %s", text)
		}
		if !json && (!strings.HasSuffix(text, "\n") || !strings.Contains(out.String(), ", ended by an error\nmemory: ")) {
			t.Errorf("printed %q, %s", text, out)
		}
	}
}

// Run wants a model that gives text.
func TestRunEmbeddingModel(t *testing.T) {
	model := testutil.Shared(t, "oracle/qwen3-embedding")
	for _, command := range []string{"run", "chat", "bench"} {
		s, out := testSession(t, nil)
		args := []string{command, model}
		if command == "run" {
			args = append(args, "hello")
		}
		if code := s.main(args); code != exitFailed || !strings.Contains(out.String(), "gives vectors, not text: probe writes") {
			t.Errorf("%s: exit code %d: %s", command, code, out)
		}
	}
}

// What a user should hear about a model comes before the conversation, but not with --quiet.
func TestChatNotes(t *testing.T) {
	model := testutil.Shared(t, "oracle/llama") // without a template
	for flag, want := range map[string]int{"-v": 1, "-q": 0} {
		s, out := testSession(t, nil)
		var err error
		if s.stdin, err = os.Open(writeFile(t, filepath.Join(t.TempDir(), "none"), "")); err != nil {
			t.Fatal(err)
		}
		if code := s.main([]string{"chat", flag, model}); code != exitFine {
			t.Errorf("%s: exit code %d: %s", flag, code, out)
		}
		if n := strings.Count(out.String(), "note: the model has no chat template"); n != want {
			t.Errorf("%s: %d notes, want %d: %s", flag, n, want, out)
		}
		if err := s.stdin.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An input that is too long has no answer, and the conversation goes on.
func TestChatLongLine(t *testing.T) {
	s, out := testSession(t, nil)
	stdin, err := os.Open(writeFile(t, filepath.Join(t.TempDir(), "talk"), "Hi\n"+strings.Repeat("x", 2*freeText+1)+"\nHi\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	s.stdin = stdin
	code := s.main([]string{"chat", "--json", "--memory", "128MiB", "--max-tokens", "2"})
	if got := out.String(); code != exitFailed || !strings.Contains(got, `{"messages":[{"role":"user","content":"Hi"},`) ||
		strings.Count(got, `"role":"assistant"`) != 2 || !strings.Contains(got, `"errors":["a line is longer than 65536 bytes"]`) ||
		!strings.HasSuffix(got, "\nspillway: 1 turn failed\n") {
		t.Errorf("exit code %d: %s", code, got)
	}
}

// Why reads are not direct is said once by every command that reads weights, and not with --quiet.
func TestDirectRefused(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "spillway-test-")
	if err != nil {
		t.Skip("skipped: no /dev/shm")
	}
	defer os.RemoveAll(dir)
	model := filepath.Join(dir, "m.gguf")
	s, out := testSession(t, nil)
	if code := s.main([]string{"synth", "smollm2-135m", "--type", "q4_0", "--layers", "1", "--context", "64", "--out", model}); code != exitFine {
		t.Fatal(out)
	}
	for _, command := range []string{"plan", "verify", "bench -p 2 -n 0 -r 1", "probe --ids 1 --out " + dir + "/p", "run hello --raw --max-tokens 1 -v", "run hello --raw --max-tokens 1 -q"} {
		s, out := testSession(t, nil)
		args := strings.Fields(command)
		if code := s.main(append([]string{args[0], model}, args[1:]...)); code != exitFine {
			t.Fatalf("%s: exit code %d: %s", command, code, out)
		}
		want := 1
		if strings.HasSuffix(command, "-q") {
			want = 0
		}
		if n := strings.Count(out.String(), "note: "); n != want {
			t.Errorf("%s: %d notes, want %d: %s", command, n, want, out)
		}
		again := *s // as verify --identity makes for every row
		if again.tellDirectOf(t, model); strings.Count(out.String(), "note: ") != want {
			t.Errorf("%s: the note comes again: %s", command, out)
		}
	}
}

func (s *session) tellDirectOf(t *testing.T, model string) {
	t.Helper()
	cat, err := s.catalog(model)
	if err != nil {
		t.Fatal(err)
	}
	s.tellDirect(cat)
	if err := cat.Close(); err != nil {
		t.Error(err)
	}
}

// A turn that was stopped before its first token leaves nothing behind.
func TestNothingAnswered(t *testing.T) {
	s, out := testSession(t, nil)
	c := &conversation{session: s, turns: []spillway.Message{{Role: "user", Content: "x"}}}
	c.keep(&spillway.Answer{FinishReason: spillway.FinishCancelled})
	if len(c.turns) != 0 || !strings.Contains(out.String(), "nothing was answered") {
		t.Errorf("%+v: %s", c.turns, out)
	}
}
