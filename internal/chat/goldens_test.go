package chat

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/testutil"
)

// golden is a line of ../shared/chat/goldens.jsonl.gz; its README explains the fields.
type golden struct {
	Template     string  `json:"template"`
	Conversation string  `json:"conversation"`
	Expected     *string `json:"expected"`
	Error        string  `json:"error"`
	Message      string  `json:"message"`
	PythonRepr   bool    `json:"python_repr"`
	Mutation     bool    `json:"mutation"`
}

type conversation struct {
	ID       string    `json:"id"`
	Messages []*Object `json:"messages"`
	Kwargs   *Object   `json:"kwargs"`
}

type templateEntry struct{ Name, File, BOS, EOS string }

func (e *templateEntry) UnmarshalJSON(b []byte) error {
	var v struct {
		Name, File string
		BOS        *string `json:"bos_token"`
		EOS        *string `json:"eos_token"`
	}
	err := json.Unmarshal(b, &v)
	*e = templateEntry{Name: v.Name, File: v.File}
	if v.BOS != nil {
		e.BOS = *v.BOS
	}
	if v.EOS != nil {
		e.EOS = *v.EOS
	}
	return err
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readGoldens(t *testing.T, path string) []golden {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	for d := json.NewDecoder(r); d.More(); {
		var g golden
		if err := d.Decode(&g); err != nil {
			t.Fatal(err)
		}
		if !g.PythonRepr {
			all = append(all, g)
		}
	}
	return all
}

// input makes of a conversation what the goldens' maker gave to the template.
func (c conversation) input(e templateEntry) Input {
	in := Input{Messages: c.Messages, BOS: e.BOS, EOS: e.EOS, AddGenerationPrompt: true,
		Now: time.Date(2025, 3, 14, 9, 26, 53, 0, time.UTC), Kwargs: &Object{}}
	if c.Kwargs == nil {
		return in
	}
	for _, f := range c.Kwargs.Fields {
		switch f.Key {
		case "tools":
			in.Tools = f.Value.([]any)
		case "add_generation_prompt":
			in.AddGenerationPrompt = f.Value.(bool)
		case "continue_final_message":
			in.ContinueFinalMessage = f.Value.(bool)
		default:
			in.Kwargs.Set(f.Key, f.Value)
		}
	}
	return in
}

// check returns "" if a rendering is what the golden says.
func (g golden) check(text string, err error) string {
	switch {
	case g.Expected != nil && err != nil:
		return fmt.Sprintf("error %v", err)
	case g.Expected != nil && text != *g.Expected:
		return fmt.Sprintf("got  %q\nwant %q", text, *g.Expected)
	case g.Expected == nil && err == nil:
		return fmt.Sprintf("no error; want %s %s", g.Error, g.Message)
	case g.Error == "raise_exception":
		if !strings.Contains(err.Error(), g.Message) {
			return fmt.Sprintf("error %v, want it raised with %q", err, g.Message)
		}
	}
	return ""
}

func TestGoldens(t *testing.T) {
	dir := testutil.Shared(t, "chat")
	var entries []templateEntry
	readJSON(t, filepath.Join(dir, "templates/index.json"), &entries)
	var list []conversation
	readJSON(t, filepath.Join(dir, "conversations.json"), &list)
	conversations := map[string]conversation{}
	for _, c := range list {
		conversations[c.ID] = c
	}
	goldens := map[string][]golden{}
	for _, g := range readGoldens(t, filepath.Join(dir, "goldens.jsonl.gz")) {
		goldens[g.Template] = append(goldens[g.Template], g)
	}
	for _, e := range entries {
		source, err := os.ReadFile(filepath.Join(dir, "templates", e.File))
		if err != nil {
			t.Fatal(err)
		}
		if len(goldens[e.Name]) == 0 {
			t.Errorf("%s has no goldens", e.Name)
		}
		tmpl := newTemplate(e.Name, string(source))
		for _, g := range goldens[e.Name] {
			text, err := tmpl.Render(conversations[g.Conversation].input(e))
			if wrong := g.check(text, err); wrong != "" {
				t.Errorf("%s: %s: %s", e.Name, g.Conversation, wrong)
			}
		}
	}
}
