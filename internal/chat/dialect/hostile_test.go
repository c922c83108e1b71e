package dialect

import (
	"reflect"
	"strings"
	"testing"
)

// hostileTexts are beginnings of everything, again and again, with pieces that the grammars know.
func hostileTexts(o Options) []string {
	texts := []string{
		"{", "[", "(", `"`, "'", " ", "\n", "<", `{"a":`, `[[{"name": "`, "<tool_call", "<tool_call>", `<tool_call>{"name":"`,
		"<think>", "</think", "<function=f><parameter=a>", "<parameter=a>x", "</parameter>", "[f(a=[", "f(a='", "[f(a=((", "[TOOL_CALLS]f[ARGS]{",
		"<|channel|>", "<|channel|>final<|message|>a<|end|>", "<|start|>assistant to=f<|message|>", "<|open|>think<|sep|>", "<|close|>",
		"é", "\xff", "\xe4\xbd",
	}
	if t, ok := lookup(tools(), o.Tool, toolName); ok {
		for _, m := range t.markers {
			texts = append(texts, m, m[:len(m)-1], m+"<", m+m[:1], m+`{"name": "f", "arguments": {"a": "`)
		}
	}
	return texts
}

// forAll calls f for all dialects of calls, each with one of reasoning, and the other ones of reasoning.
func forAll(f func(o Options)) {
	for i, name := range ToolNames() {
		o := Options{Tool: name}
		if rs := reasonings(); rs[i%len(rs)].channels == nil {
			o.Reasoning = rs[i%len(rs)].name
		}
		if t, _ := lookup(tools(), name, toolName); t.needs != "" {
			o.Reasoning = ""
		}
		f(o)
	}
	for _, name := range ReasoningNames() {
		f(Options{Reasoning: name, PromptOpen: true})
		f(Options{Reasoning: name})
	}
}

// TestSteps counts the bytes that are looked at: a bounded number for each byte of the text, however it is fed.
func TestSteps(t *testing.T) {
	const perByte = 80
	count := func(o Options, unit string, size, piece int) {
		text := strings.Repeat(unit, size/len(unit))
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(text); i += piece {
			p.Write(text[i:min(i+piece, len(text))])
		}
		p.Close()
		if p.steps > perByte*len(text) {
			t.Errorf("%s/%s: %d steps for %d bytes of %q", o.Tool, o.Reasoning, p.steps, len(text), unit)
		}
	}
	forAll(func(o Options) {
		for _, unit := range hostileTexts(o) {
			count(o, unit, 8<<10, 3)
		}
	})
	for _, unit := range []string{"{", "<tool_call", "<tool_call>", `<tool_call>{"name":"`} {
		count(Options{Tool: "hermes", Reasoning: "qwen3"}, unit, 1<<20, 1)
	}
	for _, unit := range []string{"{", "[f(a=(", "<tool_call>", "<function=f><parameter=a>"} {
		for _, name := range []string{"llama3_json", "qwen3_coder", "pythonic"} {
			count(Options{Tool: name}, unit, 1<<20, 64)
		}
	}
}

// TestHeld: what is held back is bounded; a call that is longer is content.
func TestHeld(t *testing.T) {
	long := `<tool_call>{"name": "f", "arguments": {"a": "` + strings.Repeat("x", maxHeld) + `"}}</tool_call>`
	got := parse(t, Options{Tool: "hermes"}, long)
	if got.content != long || got.calls != nil {
		t.Errorf("%d bytes of content, %d calls", len(got.content), len(got.calls))
	}
	pieces := []string{}
	for i := 0; i < len(long); i += 1000 {
		pieces = append(pieces, long[i:min(i+1000, len(long))])
	}
	if again := parse(t, Options{Tool: "hermes"}, pieces...); !reflect.DeepEqual(again, got) {
		t.Error("in pieces something else comes out")
	}
	near := `<tool_call>{"name": "f", "arguments": {"a": "` + strings.Repeat("x", maxHeld-100) + `"}}</tool_call>`
	if got := parse(t, Options{Tool: "hermes"}, near); len(got.calls) != 1 || got.content != "" {
		t.Errorf("%d bytes of content, %d calls", len(got.content), len(got.calls))
	}
	spaces := strings.Repeat(" ", 3*maxHeld)
	if got := parse(t, Options{Tool: "hermes"}, spaces+"x"+spaces); got.content != spaces+"x"+spaces {
		t.Errorf("%d bytes of white space and x", len(got.content))
	}
	p, err := New(Options{Tool: "hermes"})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		p.Write(strings.Repeat("words and more ", 10000))
	}
	if cap(p.buf) > 4*pieceBytes {
		t.Errorf("%d bytes are kept of content", cap(p.buf))
	}
	p.Close()
}

// FuzzSplit: any cut gives the same answer, and what has no marker comes out as it went in.
func FuzzSplit(f *testing.F) {
	cases, tools := readCases(f, "testdata")
	for i, c := range cases {
		f.Add(c.Text, uint8(i), uint8(i/3), uint16(i), c.PromptOpen)
	}
	names, reasons := ToolNames(), ReasoningNames()
	f.Fuzz(func(t *testing.T, text string, tool, reason uint8, cut uint16, open bool) {
		o := Options{Tool: append(names, "")[int(tool)%(len(names)+1)], Reasoning: append(reasons, "")[int(reason)%(len(reasons)+1)], PromptOpen: open, Tools: tools}
		if p, err := New(o); err != nil {
			o.Reasoning = ""
		} else {
			p.Close()
		}
		whole := parse(t, o, text)
		at := int(cut) % (len(text) + 1)
		if got := parse(t, o, text[:at], text[at:]); !reflect.DeepEqual(got, whole) {
			t.Errorf("%+v: cut at %d: %q, whole: %q", o, at, got, whole)
		}
		if got := parse(t, o, bytesOf(text)...); !reflect.DeepEqual(got, whole) {
			t.Errorf("%+v: byte by byte: %q, whole: %q", o, got, whole)
		}
		for _, c := range whole.calls {
			if _, ok := decodeJSON(t, c.args).(map[string]any); !ok || c.name == "" {
				t.Errorf("%+v: the call is %q", o, c)
			}
		}
		if plain := keepLetters(text); !open && o.Reasoning != "granite" && o.Tool != "functionary_v32" {
			if got := parse(t, o, plain); got.content != plain {
				t.Errorf("%+v: %q became %q", o, plain, got)
			}
		}
	})
}

// keepLetters leaves nothing that a marker is made of.
func keepLetters(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("<>[]{}|:;`◁▷", r) {
			return '.'
		}
		return r
	}, text)
}
