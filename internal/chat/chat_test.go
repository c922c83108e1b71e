package chat

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/vfs"
)

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

func TestStrftime(t *testing.T) {
	at := time.Date(2025, 3, 4, 15, 6, 7, 89_000_000, time.FixedZone("CET", 3600))
	for directive, want := range map[string]string{
		"%a %A %b %B %h": "Tue Tuesday Mar March Mar", "%d %-d %e %j": "04 4  4 063", "%m %y %Y %u %w": "03 25 2025 2 2",
		"%H %I %M %S %f %p": "15 03 06 07 089000 PM", "%z %Z %s": "+0100 CET 1741097167", "%F %T %R": "2025-03-04 15:06:07 15:06",
		"%D %x %X": "03/04/25 03/04/25 15:06:07", "%c": "Tue Mar  4 15:06:07 2025", "%% %n%t%": "% \n\t%", "%Q": "%Q",
	} {
		if got := strftime(at, directive); got != want {
			t.Errorf("%q is %q, want %q", directive, got, want)
		}
	}
}

// TestTemplateIsShared renders with one template in several requests at once.
func TestTemplateIsShared(t *testing.T) {
	tmpl := newTemplate("given", `{%- macro turn(m) %}<{{ m.role | upper }}>{{ m.content | trim }}{% endmacro -%}
{%- set ns = namespace(n=0) -%}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ turn(m) }}{{ ns.n }}{% endfor %}{{ tools | tojson if tools }}`)
	var all sync.WaitGroup
	for i := range 4 {
		text := strings.Repeat("x", i)
		want := "<USER>" + text + "1<ASSISTANT>" + text + "2"
		all.Go(func() {
			for range 50 {
				got, user, err := tmpl.RenderSpans(Input{Messages: []*Object{Text("user", " "+text), Text("assistant", text)}})
				if err != nil || got != want || len(user) != 2*min(i, 1) {
					t.Errorf("got %q with %v, %v; want %q", got, user, err, want)
					return
				}
			}
		})
	}
	all.Wait()
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

// source returns the text of the template that a folder gives to a request.
func source(t *testing.T, files map[string]string, tools bool) (*Template, error) {
	t.Helper()
	set, err := FromFolder(folder(files))
	if err != nil {
		return nil, err
	}
	return set.For(tools)
}

func TestFromFolder(t *testing.T) {
	plain := Builtin("plain").Source()
	two := `{"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]}`
	for _, c := range []struct {
		files        map[string]string
		tools        bool
		source, name string
	}{
		{nil, false, plain, "plain"},
		{map[string]string{"tokenizer_config.json": `{"added_tokens_decoder": {"1": {"content": "x"}}, "bos_token": null}`}, true, plain, "plain"},
		{map[string]string{"tokenizer_config.json": `{"chat_template": "A"}`}, true, "A", "the model's (tokenizer_config.json)"},
		{map[string]string{"tokenizer_config.json": `{"chat_template": [{"name": "only", "template": "O"}]}`}, false, "O", "the model's (only in tokenizer_config.json)"},
		{map[string]string{"tokenizer_config.json": two}, false, "D", "the model's (tokenizer_config.json)"},
		{map[string]string{"tokenizer_config.json": two}, true, "T", "the model's (tool_use in tokenizer_config.json)"},
		{map[string]string{"tokenizer_config.json": `{"chat_template": {"default": "D", "tool_use": "T"}}`}, true, "T", "the model's (tool_use in tokenizer_config.json)"},
		{map[string]string{"tokenizer_config.json": `{"chat_template": "A"}`, "chat_template.jinja": "J"}, false, "J", "the model's (chat_template.jinja)"},
		{map[string]string{"chat_template.json": `{"chat_template": "P"}`}, false, "P", "the model's (chat_template.json)"},
		{map[string]string{"chat_template.json": `{"chat_template": "P"}`, "tokenizer_config.json": `{"chat_template": "A"}`}, false, "A", "the model's (tokenizer_config.json)"},
		{map[string]string{"chat_template.jinja": "J", "additional_chat_templates/tool_use.jinja": "T"}, true, "T", "the model's (additional_chat_templates/tool_use.jinja)"},
		{map[string]string{"chat_template.jinja": "J", "additional_chat_templates/tool_use.jinja": "T"}, false, "J", "the model's (chat_template.jinja)"},
	} {
		tmpl, err := source(t, c.files, c.tools)
		if err != nil || tmpl.Source() != c.source || tmpl.Name != c.name {
			t.Errorf("%v: %+v, %v", c.files, tmpl, err)
		}
	}
	tmpl, err := source(t, map[string]string{"tokenizer_config.json": `{"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": "{{ bos_token }}{{ eos_token }}"}`}, false)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := tmpl.Render(Input{}); err != nil || text != "<s></s>" {
		t.Errorf("%q, %v", text, err)
	}
	for _, bad := range []string{`{"chat_template": 5}`, `{"chat_template": {"a": 1}}`, `[]`, `{"a": `, ``, `{"bos_token": 4}`,
		`{"x": "` + strings.Repeat("x", maxSource+1) + `"}`} {
		var format *checkpoint.FormatError
		if _, err := FromFolder(folder(map[string]string{"tokenizer_config.json": bad})); !errors.As(err, &format) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestUse(t *testing.T) {
	set, err := FromFolder(folder(map[string]string{"tokenizer_config.json": `{"bos_token": "<s>", "chat_template": [{"name": "a", "template": "A"}, {"name": "b", "template": "B"}]}`,
		"additional_chat_templates/rag.jinja": "R", "additional_chat_templates/bad.jinja": "{{"}))
	if err != nil {
		t.Fatal(err)
	}
	if tmpl, err := set.For(false); err == nil || !strings.Contains(err.Error(), "a, b") {
		t.Errorf("%v, %v: none of the names is default", tmpl, err)
	}
	for _, c := range []struct{ name, source string }{{"b", "B"}, {"rag", "R"}, {"ChatML", Builtin("chatml").Source()}} {
		if err := set.Use(c.name); err != nil {
			t.Error(err)
		}
		if tmpl, err := set.For(true); err != nil || tmpl.Source() != c.source || tmpl.BOS != "<s>" {
			t.Errorf("%s: %+v, %v", c.name, tmpl, err)
		}
	}
	for name, want := range map[string]string{"nothing": "the names are a, b, rag, ", "../rag": "there is no chat template", "bad": "cannot be read"} {
		if err := set.Use(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := set.UseSource("given", "{% if %}"); err == nil {
		t.Error("a broken template is taken")
	}
	if err := set.UseSource("given", "G{{ bos_token }}"); err != nil {
		t.Error(err)
	}
	if tmpl, err := set.For(false); err != nil || tmpl.Name != "given" || tmpl.BOS != "<s>" {
		t.Errorf("%+v, %v", tmpl, err)
	}
}

func TestBuiltins(t *testing.T) {
	var talk Object
	if err := talk.UnmarshalJSON([]byte(`{"m": [{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "U"}]},
		{"role": "assistant", "content": "A"}, {"role": "user", "content": "V"}]}`)); err != nil {
		t.Fatal(err)
	}
	in := Input{AddGenerationPrompt: true, BOS: "<s>", EOS: "</s>"}
	for _, m := range talk.Get("m").([]any) {
		in.Messages = append(in.Messages, m.(*Object))
	}
	for name, want := range map[string]string{
		"chatml":   "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n",
		"llama3":   "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nV<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
		"gemma":    "<s><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<start_of_turn>user\nV<end_of_turn>\n<start_of_turn>model\n",
		"phi3":     "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nV<|end|>\n<|assistant|>\n",
		"zephyr":   "<|system|>\nS</s>\n<|user|>\nU</s>\n<|assistant|>\nA</s>\n<|user|>\nV</s>\n<|assistant|>\n",
		"deepseek": "<s>S<｜User｜>U<｜Assistant｜>A</s><｜User｜>V<｜Assistant｜>",
		"mistral":  "<s>[INST] S\n\nU [/INST] A</s>[INST] V [/INST]",
		"llama2":   "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST] A </s><s>[INST] V [/INST]",
		"vicuna":   "S\n\nUSER: U\nASSISTANT: A</s>\nUSER: V\nASSISTANT:",
		"alpaca":   "S\n\n### Instruction:\nU\n\n### Response:\nA</s>\n\n### Instruction:\nV\n\n### Response:\n",
		"plain":    "S\n\nUser: U\n\nAssistant: A\n\nUser: V\n\nAssistant:",
	} {
		text, user, err := Builtin(name).RenderSpans(in)
		if err != nil || text != want {
			t.Errorf("%s: %q, %v, want %q", name, text, err, want)
		}
		all := ""
		for _, s := range user {
			all += text[s.Start:s.End]
		}
		if all != "SUAV" {
			t.Errorf("%s: %q is from the request", name, all)
		}
	}
	for _, name := range BuiltinNames() {
		if Builtin(name) == nil {
			t.Errorf("%s is missing", name)
		}
	}
	in.Messages = in.Messages[1:2]
	if text, err := Builtin("plain").Render(in); err != nil || text != "U" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestGuess(t *testing.T) {
	for token, want := range map[string]string{"<|im_start|>": "chatml", "<|start_header_id|>": "llama3", "<start_of_turn>": "gemma", "[INST]": "mistral", "x": "plain"} {
		if got := Guess(func(s string) bool { return s == token }); got.Name != want {
			t.Errorf("%s: %s, want %s", token, got.Name, want)
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
		set, err := FromCatalog(c)
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := set.For(false)
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

// TestNamedInGGUF: tokenizer.chat_template.NAME stands beside the default one.
func TestNamedInGGUF(t *testing.T) {
	var b bytes.Buffer
	w := gguf.NewWriter(&b)
	if err := errors.Join(w.Set("tokenizer.chat_templates", []string{"tool_use"}), w.Set("tokenizer.chat_template.tool_use", "T"),
		w.Set("tokenizer.chat_template", "D"), w.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.OpenFile(vfs.Bytes("test.gguf", b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	set, err := FromCatalog(c)
	if err != nil {
		t.Fatal(err)
	}
	for tools, want := range map[bool]string{true: "T", false: "D"} {
		if tmpl, err := set.For(tools); err != nil || tmpl.Source() != want {
			t.Errorf("%v: %+v, %v", tools, tmpl, err)
		}
	}
	if set.Guessed() || len(set.Names()) != 2 {
		t.Errorf("names %v", set.Names())
	}
}
