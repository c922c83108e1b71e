package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/plan"
)

// What is wrong with a line is said in the words of the help text, not in those of the decoder.
func TestTokenizeErrors(t *testing.T) {
	for line, want := range map[string]string{
		`{"ids": [1.5]}`:                    "ids must be a list of whole numbers from 0 to 2147483647",
		`{"ids": ["a"]}`:                    "ids must be a list of whole numbers from 0 to 2147483647",
		`{"ids": 7}`:                        "ids must be a list of whole numbers from 0 to 2147483647",
		`{"text": 5}`:                       "text must be a text",
		`{"text": "a", "add_special": "x"}`: "add_special must be true or false",
		`[1]`:                               "array in the place of an object",
		`{"ids": `:                          "not valid JSON",
	} {
		_, err := tokenizeLine(nil, []byte(line))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// A mark at the beginning, as some editors write it, is no part of the first line.
func TestByteOrderMark(t *testing.T) {
	var out strings.Builder
	err := eachLine(t.Context(), strings.NewReader("\ufeff{\"a\": 1}\n{\"a\": 2}\n"), &out, func(line []byte) (any, error) {
		var x struct{ A int }
		return x, json.Unmarshal(line, &x)
	})
	if err != nil || strings.Contains(out.String(), "error") || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%v: %s", err, out.String())
	}
}

// Arguments of the rendering may stand beside the messages; tools are objects.
func TestRenderArguments(t *testing.T) {
	r := &renderer{set: &chat.Set{}}
	if err := r.set.Use("chatml"); err != nil {
		t.Fatal(err)
	}
	const messages = `{"messages": [{"role": "user", "content": "x"}], `
	for rest, want := range map[string]string{
		`"add_generation_prompt": false}`: "x<|im_end|>\n",
		`"add_generation_prompt": true}`:  "<|im_start|>assistant\n",
		`"add_generation_prompt": 1}`:     "error: add_generation_prompt is neither true nor false",
		`"tools": [5]}`:                   "error: tool 0 is no object",
	} {
		got := ""
		switch answer, err := objects(r.line)([]byte(messages + rest)); {
		case err != nil:
			got = "error: " + err.Error()
		default:
			got = answer.(rendered).Text
		}
		if !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", rest, got, want)
		}
	}
}

// What was not measured bounds no prediction: it is left out.
func TestUnmeasuredSpeeds(t *testing.T) {
	f := plan.Prediction{Decode: 5, Prefill: 1.8e9, Limit: "memory"}
	if got := known(f, plan.Machine{Memory: 1}); got.Decode != 5 || got.Prefill != 0 {
		t.Errorf("%+v", got)
	}
	if got := known(f, plan.Machine{Flops: 1}); got.Decode != 0 || got.Prefill != 1.8e9 {
		t.Errorf("%+v", got)
	}
	for v, want := range map[float64]string{0: "not measured", 0.5: "0.50 tokens/s", 1.81e6: "1810000 tokens/s"} {
		if got := tokenSpeed(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// A file of the system's that fails is named as the user did.
func TestCause(t *testing.T) {
	err := writeWhole(t.TempDir()+"/none/chat.json", nil)
	if err == nil || strings.Contains(err.Error(), ".spillway-") || !strings.Contains(err.Error(), "none/chat.json: ") {
		t.Error(err)
	}
	if other := errors.New("x"); cause(fmt.Errorf("%w", other)).Error() != "x" {
		t.Error("a cause is lost")
	}
	s, _ := testSession(t, map[string]string{"HOME": "/home/me"})
	for name, want := range map[string]string{"~/a": "/home/me/a", "~a": "~a", "a/~/b": "a/~/b"} {
		if got := s.expand(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A page is for others to read, as the umask has it, and a conversation is not.
func TestWriteMode(t *testing.T) {
	dir := t.TempDir()
	plain, err := os.Create(filepath.Join(dir, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	info, err := plain.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"page": info.Mode(), "chat": info.Mode() &^ 0o077} {
		mode := fs.FileMode(0o666)
		if name == "chat" {
			mode = 0o600
		}
		path := filepath.Join(dir, name)
		if err := writeMode(path, []byte(name), mode); err != nil {
			t.Fatal(err)
		}
		got, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && got.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, got.Mode(), want)
		}
	}
}
