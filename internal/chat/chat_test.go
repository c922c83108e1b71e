package chat

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/vfs"
)

func TestDefault(t *testing.T) {
	tmpl := Default()
	text, err := tmpl.Render(Input{Messages: []*Object{Text("system", "Be brief."), Text("user", "Hi")}, AddGenerationPrompt: true})
	want := "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
	if err != nil || text != want || tmpl.Name != DefaultName {
		t.Errorf("%s: %q, %v; want %q", tmpl.Name, text, err, want)
	}
}

// render renders a template with one message that has an odd order of keys.
func render(t *testing.T, source string, change func(*Input)) (string, error) {
	t.Helper()
	tmpl, err := Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ParseJSON([]byte(`{"zeta": 1, "role": "user", "alpha": [1.0, 2, "é<"], "content": "hi "}`))
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Messages: []*Object{v.(*Object)}, BOS: "<s>", EOS: "</s>", Now: time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)}
	if change != nil {
		change(&in)
	}
	return tmpl.Render(in)
}

func TestRender(t *testing.T) {
	for source, want := range map[string]string{
		"{{ messages[0] | tojson }}":                     `{"zeta": 1, "role": "user", "alpha": [1.0, 2, "é<"], "content": "hi "}`,
		"{{ bos_token }}{{ eos_token }}":                 "<s></s>",
		"{{ strftime_now('%d %b %Y %-d %H:%M %j %y') }}": "04 Mar 2025 4 05:06 063 25",
		"{{ tools is none }}{{ tools is defined }}{{ documents is none }}{{ add_generation_prompt }}{{ extra is defined }}": "TrueTrueTrueFalseFalse",
	} {
		if got, err := render(t, source, nil); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", source, got, err, want)
		}
	}
}

func TestRaise(t *testing.T) {
	_, err := render(t, "{{ raise_exception('only users may speak') }}", nil)
	var raised *Raised
	if !errors.As(err, &raised) || raised.Message != "only users may speak" {
		t.Errorf("got %v", err)
	}
}

func TestReasoningNames(t *testing.T) {
	got, err := render(t, "{% for m in messages %}{{ m.reasoning_content }}/{{ m.thinking }};{% endfor %}", func(in *Input) {
		for _, key := range []string{"reasoning_content", "reasoning", "thinking"} {
			m := Text("assistant", "x")
			m.Set(key, key)
			in.Messages = append(in.Messages, m)
		}
	})
	if want := "/;reasoning_content/reasoning_content;reasoning/reasoning;thinking/thinking;"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestContinue(t *testing.T) {
	open := func(in *Input) { in.ContinueFinalMessage = true }
	for source, want := range map[string]string{
		"[{{ messages[-1].content }}] end":        "[hi ",
		"[{{ messages[-1].content | trim }}] end": "[hi ",
	} {
		if got, err := render(t, source, open); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", source, got, err, want)
		}
	}
	if _, err := render(t, "nothing of it", open); err == nil {
		t.Error("a template that does not show the message gives no error")
	}
}

func TestMaxBytes(t *testing.T) {
	source := "{% for i in range(1000) %}0123456789{% endfor %}"
	if text, err := render(t, source, nil); err != nil || len(text) != 10000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if text, err := render(t, source, func(in *Input) { in.MaxBytes = 20000 }); err == nil {
		t.Errorf("%d bytes were made within a limit that the range alone nearly fills", len(text))
	}
}

// TestMessagesStay: a template cannot change the caller's messages.
func TestMessagesStay(t *testing.T) {
	m := Text("user", "hi")
	_, err := render(t, "{% set _ = messages[-1].update({'content': 'changed'}) %}{% set _ = messages.pop() %}", func(in *Input) {
		in.Messages = append(in.Messages, m)
	})
	if err != nil || m.Get("content") != "hi" {
		t.Errorf("content %v, %v", m.Get("content"), err)
	}
}

func TestParseErrors(t *testing.T) {
	for _, source := range []string{"{% if %}", "{{ a", strings.Repeat("x", maxSource+1)} {
		if _, err := Parse(source); err == nil {
			t.Errorf("%.20q is taken", source)
		}
	}
}

// folder opens files that are given as text.
func folder(files map[string]string) func(string) (vfs.File, error) {
	return func(name string) (vfs.File, error) {
		text, ok := files[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return vfs.Bytes(name, text), nil
	}
}

func TestFromFiles(t *testing.T) {
	for _, c := range []struct {
		files        map[string]string
		source, name string
	}{
		{nil, chatML, DefaultName},
		{map[string]string{"tokenizer_config.json": `{"added_tokens_decoder": {"1": {"content": "x"}}, "bos_token": null}`}, chatML, DefaultName},
		{map[string]string{"tokenizer_config.json": `{"chat_template": "A"}`}, "A", "the model's (tokenizer_config.json)"},
		{map[string]string{"tokenizer_config.json": `{"chat_template": [{"name": "rag", "template": "R"}, {"name": "default", "template": "D"}]}`}, "D", "the model's (tokenizer_config.json)"},
		{map[string]string{"tokenizer_config.json": `{"chat_template": "A"}`, "chat_template.jinja": "J"}, "J", "the model's (chat_template.jinja)"},
	} {
		tmpl, err := fromFiles(folder(c.files))
		if err != nil || tmpl.Source() != c.source || tmpl.Name != c.name {
			t.Errorf("%v: %+v, %v", c.files, tmpl, err)
		}
	}
	tmpl, err := fromFiles(folder(map[string]string{"tokenizer_config.json": `{"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": "{{ bos_token }}{{ eos_token }}"}`}))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := tmpl.Render(Input{}); err != nil || text != "<s></s>" {
		t.Errorf("%q, %v", text, err)
	}
	for _, bad := range []string{`{"chat_template": 5}`, `{"chat_template": [{"name": "a"}, {"name": "b"}]}`, `[]`, `{"a": `, ``, `{"bos_token": 4}`,
		`{"x": "` + strings.Repeat("x", maxSource+1) + `"}`} {
		var format *checkpoint.FormatError
		if _, err := fromFiles(folder(map[string]string{"tokenizer_config.json": bad})); !errors.As(err, &format) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestUnreadableTemplate: a template that a GGUF file has but that cannot be read is no default.
func TestUnreadableTemplate(t *testing.T) {
	for name, value := range map[string]any{"long": strings.Repeat("x", maxSource+1), "number": uint32(1)} {
		var b bytes.Buffer
		w := gguf.NewWriter(&b)
		if err := errors.Join(w.Set("tokenizer.chat_template", value), w.Close()); err != nil {
			t.Fatal(err)
		}
		c, err := checkpoint.OpenFile(vfs.Bytes("test.gguf", b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		var format *checkpoint.FormatError
		if tmpl, err := FromCatalog(c); !errors.As(err, &format) {
			t.Errorf("%s: %+v, %v", name, tmpl, err)
		}
	}
}

func TestFromCatalog(t *testing.T) {
	for _, name := range []string{"models/storyteller/hf", "models/storyteller/storyteller-Q8_0.gguf"} {
		c, err := checkpoint.Open(vfs.OS(), testutil.Shared(t, name))
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := FromCatalog(c)
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		text, err := tmpl.Render(Input{Messages: []*Object{Text("user", "Hi")}, AddGenerationPrompt: true})
		if want := "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"; err != nil || text != want {
			t.Errorf("%s: %q, %v", tmpl.Name, text, err)
		}
	}
}

func TestParseJSON(t *testing.T) {
	for _, bad := range []string{"", "{", "1 2", strings.Repeat("[", 200) + strings.Repeat("]", 200), `{"a"}`} {
		if v, err := ParseJSON([]byte(bad)); err == nil {
			t.Errorf("%.20s gives %v", bad, v)
		}
	}
	v, err := ParseJSON([]byte(`{"b": 1, "a": {"z": null, "y": [true, 1.5, "s"]}, "b": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	o := v.(*Object)
	if len(o.Fields) != 2 || o.Fields[0].Key != "b" || o.Fields[0].Value != int64(2) || o.Get("a").(*Object).Fields[1].Key != "y" {
		t.Errorf("%+v", o)
	}
}
