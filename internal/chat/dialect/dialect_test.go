package dialect

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/testutil"
)

// A testCase is a line of cases.jsonl.
type testCase struct {
	ID          string
	Dialect     string
	ToolDialect string `json:"tool_dialect"`
	Kind        string
	Text        string
	Stream      bool
	Tools       bool
	PromptOpen  bool `json:"prompt_open"`
	Expect      struct {
		Content, Reasoning string
		ToolCalls          []struct {
			Name      string
			Arguments any
		} `json:"tool_calls"`
	}
}

func (c *testCase) options(tools []Tool) Options {
	o := Options{PromptOpen: c.PromptOpen, Tool: c.ToolDialect}
	if c.Kind == "tool" {
		o.Tool = c.Dialect
	} else {
		o.Reasoning = c.Dialect
	}
	if c.Tools {
		o.Tools = tools
	}
	return o
}

// A message is a whole answer.
type message struct {
	content, reasoning string
	calls              []call
}

// parse reads an answer in pieces.
func parse(t testing.TB, o Options, pieces ...string) message {
	t.Helper()
	return joined(t, eventsOf(t, o, pieces...))
}

func eventsOf(t testing.TB, o Options, pieces ...string) (events []Event) {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range pieces {
		events = append(events, p.Write(piece)...)
	}
	return append(events, p.Close()...)
}

// joined puts the events of an answer together, and checks their order.
func joined(t testing.TB, events []Event) message {
	t.Helper()
	m, open := gathered(t, events)
	if open {
		t.Error("a call has no end")
	}
	return m
}

// gathered is joined of an answer whose last call may be open.
func gathered(t testing.TB, events []Event) (m message, open bool) {
	t.Helper()
	for _, e := range events {
		switch e.Kind {
		case Content:
			m.content += e.Text
		case Reasoning:
			m.reasoning += e.Text
		case CallBegin:
			if open || e.Call != len(m.calls) {
				t.Errorf("call %d begins, open %v, after %d calls", e.Call, open, len(m.calls))
			}
			open = true
			m.calls = append(m.calls, call{name: e.Name, id: e.ID})
		case CallArguments:
			if !open || e.Call != len(m.calls)-1 {
				t.Fatalf("arguments of call %d, open %v, of %d calls", e.Call, open, len(m.calls))
			}
			m.calls[e.Call].args += e.Text
		case CallEnd:
			open = false
		}
	}
	return m, open
}

// bytesOf cuts a text at every byte.
func bytesOf(text string) []string {
	pieces := make([]string, len(text))
	for i := range pieces {
		pieces[i] = text[i : i+1]
	}
	return pieces
}

func decodeJSON(t testing.TB, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}

func (c *testCase) check(t *testing.T, how string, got message) {
	t.Helper()
	if g, w := strings.TrimSpace(got.content), strings.TrimSpace(c.Expect.Content); g != w {
		t.Errorf("%s, %s: content %q, want %q", c.ID, how, g, w)
	}
	if g, w := strings.TrimSpace(got.reasoning), strings.TrimSpace(c.Expect.Reasoning); g != w {
		t.Errorf("%s, %s: reasoning %q, want %q", c.ID, how, g, w)
	}
	if len(got.calls) != len(c.Expect.ToolCalls) {
		t.Errorf("%s, %s: calls %v, want %v", c.ID, how, got.calls, c.Expect.ToolCalls)
		return
	}
	for i, w := range c.Expect.ToolCalls {
		g := got.calls[i]
		if args := decodeJSON(t, g.args); g.name != w.Name || !reflect.DeepEqual(args, w.Arguments) {
			t.Errorf("%s, %s: call %s(%s), want %s(%v)", c.ID, how, g.name, g.args, w.Name, w.Arguments)
		}
	}
}

func readCases(t testing.TB, dir string) (cases []testCase, tools []Tool) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "tools.json"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := chat.ParseJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	if tools, err = ReadTools(list.([]any)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c testCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return cases, tools
}

// checkCases reads every case whole, cut at every byte, and byte by byte.
func checkCases(t *testing.T, dir string) {
	cases, tools := readCases(t, dir)
	for _, c := range cases {
		o := c.options(tools)
		whole := parse(t, o, c.Text)
		c.check(t, "whole", whole)
		c.check(t, "byte by byte", parse(t, o, bytesOf(c.Text)...))
		for i := 1; i < len(c.Text); i++ {
			if got := parse(t, o, c.Text[:i], c.Text[i:]); !reflect.DeepEqual(got, whole) {
				t.Errorf("%s: cut at %d: %q, whole: %q", c.ID, i, got, whole)
			}
		}
		if t.Failed() {
			return
		}
	}
}

func TestCases(t *testing.T)       { checkCases(t, "testdata") }
func TestSharedCases(t *testing.T) { checkCases(t, testutil.Shared(t, "chat")) }

// TestDocumented fails if docs/dialects.md lacks a dialect.
func TestDocumented(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "dialects.md"))
	if err != nil {
		t.Fatal(err)
	}
	calls, reasoning, ok := strings.Cut(string(raw), "\n## Reasoning")
	if !ok {
		t.Fatal("there is no section on reasoning")
	}
	for _, name := range ToolNames() {
		if !strings.Contains(calls, "| `"+name+"` |") {
			t.Errorf("the tool-call dialect %s is not in the table", name)
		}
	}
	for _, name := range ReasoningNames() {
		if !strings.Contains(reasoning, "| `"+name+"` |") {
			t.Errorf("the reasoning dialect %s is not in the table", name)
		}
	}
}

// TestSmallCopyCoversAll fails if a dialect has no case in testdata.
func TestSmallCopyCoversAll(t *testing.T) {
	cases, _ := readCases(t, "testdata")
	seen := map[string]bool{}
	for _, c := range cases {
		seen[c.Kind+" "+c.Dialect] = true
	}
	for _, name := range ToolNames() {
		if !seen["tool "+name] {
			t.Errorf("no case of the tool-call dialect %s", name)
		}
	}
	for _, name := range ReasoningNames() {
		if !seen["reasoning "+name] {
			t.Errorf("no case of the reasoning dialect %s", name)
		}
	}
}
