package dialect

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/chat"
)

// A ruleCase is an answer and exactly what it is: white space counts, and the text of arguments.
type ruleCase struct {
	text, content, reasoning string
	calls                    []call
}

func object(t testing.TB, text string) *chat.Object {
	t.Helper()
	v, err := chat.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v.(*chat.Object)
}

// checkRules reads the answers whole and byte by byte.
func checkRules(t *testing.T, o Options, cases ...ruleCase) {
	t.Helper()
	for _, c := range cases {
		want := message{c.content, c.reasoning, c.calls}
		for _, pieces := range [][]string{{c.text}, bytesOf(c.text)} {
			if got := parse(t, o, pieces...); !reflect.DeepEqual(got, want) {
				t.Errorf("%s/%s: %q in %d pieces\n got %q\nwant %q", o.Tool, o.Reasoning, c.text, len(pieces), got, want)
			}
		}
	}
}

// asIs are answers without calls.
func asIs(texts ...string) (out []ruleCase) {
	for _, text := range texts {
		out = append(out, ruleCase{text: text, content: text})
	}
	return out
}

func one(name, args string) []call { return []call{{name: name, args: args}} }

func TestHermesRules(t *testing.T) {
	checkRules(t, Options{Tool: "hermes"}, asIs(
		"", " \n ", "plain ", "a <tool_call", "a <tool_call>", "<tool_call>{}</tool_call>", `<tool_call>{"name": "f"}</tool_call>`,
		`<tool_call>{"arguments": {}}</tool_call>`, `<tool_call>{"name": "f", "arguments": [1]}</tool_call>`,
		`<tool_call>{"name": "f", "arguments": {"a": 01}}</tool_call>`, `<tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>`,
		`<tool_call>{"name": "f", "arguments": {}}`, `<tool_call>{"name": "f", "arguments": {}} and`,
		"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"\n\"}}</tool_call>", `<tool_call>{"name": "f", "arguments": {"a": "\x"}}</tool_call>`,
		`</tool_call>`, `<tool_call>[{"name": "f", "arguments": {}}]</tool_call>`,
	)...)
	checkRules(t, Options{Tool: "hermes"},
		ruleCase{text: "<tool_call>{\"name\":\"f\",\"arguments\":{\"b\":12345678901234567890,\"a\": 1.0}}</tool_call>\n", calls: one("f", `{"b":12345678901234567890,"a": 1.0}`)},
		ruleCase{text: `<tool_call>{"arguments": {"a": "</tool_call> }"}, "name": "f\u00fc"}</tool_call>`, calls: one("fü", `{"a": "</tool_call> }"}`)},
		ruleCase{text: `<tool_call>{"name": "f", "arguments": "{\"a\": [1]}"}</tool_call>`, calls: one("f", `{"a": [1]}`)},
		ruleCase{text: `<tool_call>{"name": "f", "parameters": {}, "id": "x1"}</tool_call>`, calls: []call{{"f", "x1", "{}"}}},
		ruleCase{
			text:    "one\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\ntwo <tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call> three ",
			content: "one\ntwo three ", calls: []call{{name: "f", args: "{}"}, {name: "g", args: "{}"}},
		},
		ruleCase{
			text:    "<tool_call>oh <tool_call><tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
			content: "<tool_call>oh <tool_call>", calls: one("f", "{}"),
		},
	)
}

const typeTools = `{"properties": {
	"s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"}, "a": {"type": "array", "items": {"type": "string"}},
	"o": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "integer"}}}, "z": {"type": "null"},
	"sn": {"type": ["string", "null"]}, "any": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "e": {"enum": ["1", "2"]},
	"u": {"type": ["string", "array", "object", "boolean"]}, "k": {"const": true}, "m": {"enum": [1, 2.5, null]}, "p": {"properties": {}}, "l": {"items": {}}, "far": {"$ref": "other.json"},
	"r": {"$ref": "#/$defs/color"}, "loop": {"$ref": "#/$defs/loop"}}, "$defs": {"color": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"}}}`

func TestTypesOfSchema(t *testing.T) {
	o := Options{Tool: "mimo", Tools: []Tool{{"f", object(t, typeTools)}, {Name: "g"}}}
	for _, c := range []struct{ tool, key, text, want string }{
		{"f", "s", "007", `"007"`}, {"f", "s", `{"a": 1}`, `"{\"a\": 1}"`}, {"f", "s", " true ", `" true "`}, {"f", "s", "a\tb\n\"\\\x01é", `"a\tb\n\"\\\u0001é"`},
		{"f", "i", "12345678901234567890", "12345678901234567890"}, {"f", "i", " 3\n", "3"}, {"f", "i", "three", `"three"`}, {"f", "i", "1_000", "1000"},
		{"f", "n", "-1.50", "-1.50"}, {"f", "n", ".5", "0.5"}, {"f", "b", "True", "true"}, {"f", "b", "false", "false"}, {"f", "b", "no", `"no"`},
		{"f", "a", "['x', 'y']", `["x", "y"]`}, {"f", "a", `["x"]`, `["x"]`}, {"f", "a", "[x", `"[x"`}, {"f", "o", "{'x': None}", `{"x": null}`},
		{"f", "z", "None", "null"}, {"f", "sn", "null", "null"}, {"f", "sn", "nullable", `"nullable"`}, {"f", "sn", "5", `"5"`},
		{"f", "any", "5", "5"}, {"f", "any", "5.5", `"5.5"`}, {"f", "any", "five", `"five"`}, {"f", "e", "1", `"1"`}, {"f", "r", "1", `"1"`}, {"f", "loop", "1", "1"}, {"f", "far", "1", "1"},
		{"f", "u", "[1]", "[1]"}, {"f", "u", "{}", "{}"}, {"f", "u", "True", "true"}, {"f", "u", "1", `"1"`}, {"f", "u", "null", `"null"`}, {"f", "u", "'x'", `"'x'"`},
		{"f", "k", "True", "true"}, {"f", "m", "None", "null"}, {"f", "p", "{'a': 1}", `{"a": 1}`}, {"f", "l", "(1, 2)", "[1, 2]"},
		{"f", "unknown", "5", "5"}, {"f", "unknown", "True", `"True"`}, {"f", "unknown", `{"a":[]}`, `{"a":[]}`}, {"f", "unknown", `"q"`, `"q"`},
		{"g", "x", "null", "null"}, {"h", "x", "text", `"text"`},
	} {
		text := "<tool_call><function=" + c.tool + "><parameter=" + c.key + ">" + c.text + "</parameter></function></tool_call>"
		checkRules(t, o, ruleCase{text: text, calls: one(c.tool, `{"`+c.key+`": `+c.want+`}`)})
	}
}

func TestQwen3CoderRules(t *testing.T) {
	o := Options{Tool: "qwen3_coder", Tools: []Tool{{"f", object(t, typeTools)}}}
	checkRules(t, o,
		ruleCase{text: "<function=f>\n<parameter=s>\n\n x \n\n</parameter>\n</function>", calls: one("f", `{"s": "\n x \n"}`)},
		ruleCase{text: "<function=f></function>\n</tool_call> end", content: " end", calls: one("f", "{}")},
		ruleCase{text: "<tool_call>\n<function=f>\n<parameter=s>\nx\n<parameter=i>\n5\n</function>\n</tool_call>", calls: one("f", `{"s": "x", "i": 5}`)},
		ruleCase{text: "<tool_call><function=f><parameter=s>\na </function> b\n</parameter></function></tool_call>", calls: one("f", `{"s": "a </function> b"}`)},
		ruleCase{text: "<tool_call><function=f><parameter=s>1</parameter><parameter=s>2</parameter></function><function=g></function></tool_call>", calls: []call{{name: "f", args: `{"s": "2"}`}, {name: "g", args: "{}"}}},
		ruleCase{text: "<tool_call><function=f><parameter=s></parameter></function></tool_call>", calls: one("f", `{"s": ""}`)},
		ruleCase{text: "<tool_call>\r\n<function=f>\r\n<parameter=s>\r\nx\r\n</parameter>\r\n</function>\r\n</tool_call>", calls: one("f", `{"s": "x"}`)},
		ruleCase{text: "<function=f>\n<parameter=s>\nx\r\n\n</parameter>\n</function>", calls: one("f", `{"s": "x\u000d\n"}`)},
	)
	checkRules(t, o, asIs("<function=>", "<function=a b></function>", "<tool_call></tool_call>", "<tool_call><function=f></function>", "<function=f>x</function>")...)
}

func TestMistralRules(t *testing.T) {
	for _, name := range []string{"mistral_json", "mistral_args", "mistral_callid"} {
		checkRules(t, Options{Tool: name},
			ruleCase{text: `[TOOL_CALLS][{"name": "f", "arguments": {}, "id": "abc"}]`, calls: []call{{"f", "abc", "{}"}}},
			ruleCase{text: `a [TOOL_CALLS]f[ARGS]{"a": {}}[TOOL_CALLS]g[CALL_ID]i1[ARGS]{}`, content: "a", calls: []call{{name: "f", args: `{"a": {}}`}, {"g", "i1", "{}"}}},
			ruleCase{text: `[TOOL_CALLS]f[ARG[TOOL_CALLS]g[ARGS]{}`, content: "[TOOL_CALLS]f[ARG", calls: one("g", "{}")},
		)
		checkRules(t, Options{Tool: name}, asIs("[TOOL_CALLS][]", "[TOOL_CALLS]f{}", "[TOOL_CALLS][ARGS]{}", "[TOOL_CALLS]f[ARGS][1]", "[TOOL_CALL", `[TOOL_CALLS] [{"name": "f", "arguments": {}}, 5]`)...)
	}
}

func TestLlamaRules(t *testing.T) {
	checkRules(t, Options{Tool: "llama3_json"},
		ruleCase{text: ` {"name": "f", "parameters": {}}; {"name": "g", "arguments": {"a": 1}};`, calls: []call{{name: "f", args: "{}"}, {name: "g", args: `{"a": 1}`}}},
		ruleCase{text: `{"name": "f", "parameters": {}}; {"x": 1}`, content: `; {"x": 1}`, calls: one("f", "{}")},
		ruleCase{text: `<|python_tag|>{"name": "f", "parameters": {}}`, calls: one("f", "{}")},
		ruleCase{text: `{"name": "f", "parameters": {}} so it is`, content: " so it is", calls: one("f", "{}")},
	)
	checkRules(t, Options{Tool: "llama3_json"}, asIs(`{"a": 1}`, `{"name": "Bob", "age": 3}`, `{"name": "f", "parameters": {}`, `x {"name": "f", "parameters": {}}`, "{", `{"name": "f", "parameters": {}, }`)...)
	checkRules(t, Options{Tool: "llama3_python_tag"}, asIs(`{"name": "f", "parameters": {}}`, "<|python_tag|>print({})")...)
}

func TestPythonRules(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`'a"b\'c\n\x41\u00fc\U0001F600\101\d\\'`, `"a\"b'c\nAü😀A\\d\\"`}, {`"""x
"y" """`, `"x\n\"y\" "`}, {`r'\n'`, `"\\n"`}, {`'a' "b"`, `"ab"`}, {`'\ud83d\ude00'`, `"\ud83d\ude00"`},
		{"1", "1"}, {"-0.5", "-0.5"}, {"+3", "3"}, {"1.", "1.0"}, {".5e-3", "0.5e-3"}, {"0x1F", "31"}, {"0O17", "15"}, {"0b101", "5"}, {"0x00", "0"}, {"0xfffffffffffffffffffffff", "4951760157141521099596496895"}, {"0e5", "0e5"}, {"1_0", "10"}, {"1E5", "1e5"}, {"-12345678901234567890", "-12345678901234567890"},
		{"True", "true"}, {"false", "false"}, {"None", "null"}, {"[]", "[]"}, {"[1, 'a', ]", `[1, "a"]`}, {"(1, 2)", "[1, 2]"}, {"(1)", "1"}, {"(1,)", "[1]"}, {"()", "[]"},
		{"{'a': {1: True}, 'b': [{}]}", `{"a": {"1": true}, "b": [{}]}`}, {"((((5))))", "5"},
	} {
		checkRules(t, Options{Tool: "pythonic"}, ruleCase{text: "[f(a=" + c.in + ")]", calls: one("f", `{"a": `+c.want+`}`)})
	}
	checkRules(t, Options{Tool: "pythonic"},
		ruleCase{text: "\n[ f ( ) , a.b-c( x = 1 , y='2',) ]\n", calls: []call{{name: "f", args: "{}"}, {name: "a.b-c", args: `{"x": 1, "y": "2"}`}}})
	for _, bad := range []string{"'a", "0b12", "0x", "0xg", "'a\nb'", "007", "1__0", "x", "f()", "1+1", "{1, 2}", "[1", "{'a' 1}", "'\\x4'", "__import__('os')", "-", "nan", "{[1]: 2}", "1 2", "lambda: 0"} {
		checkRules(t, Options{Tool: "pythonic"}, asIs("[f(a="+bad+")]")...)
	}
	checkRules(t, Options{Tool: "pythonic"}, asIs("[]", "[f]", "[f()", "[f(1)]", "see [f()]", "[f(a=1 b=2)]", "[1, 2]", "[f()g()]", "[f(,)]")...)
	checkRules(t, Options{Tool: "llama4_pythonic"},
		ruleCase{text: "[f()]", calls: one("f", "{}")},
		ruleCase{text: "a <|python_start|>[f()]<|python_end|>", content: "a", calls: one("f", "{}")})
	checkRules(t, Options{Tool: "olmo3"},
		ruleCase{text: "<function_calls>f()\n\ng(a='x')</function_calls>", calls: []call{{name: "f", args: "{}"}, {name: "g", args: `{"a": "x"}`}}})
	checkRules(t, Options{Tool: "olmo3"}, asIs("<function_calls></function_calls>", "<function_calls>f()\noh</function_calls>")...)
	checkRules(t, Options{Tool: "lfm2"},
		ruleCase{text: `<|tool_call_start|>{"name": "f", "arguments": {}}<|tool_call_end|>`, calls: one("f", "{}")},
		ruleCase{text: `<|tool_call_start|>[f(a={'b': 1})]<|tool_call_end|>done`, content: "done", calls: one("f", `{"a": {"b": 1}}`)})
}

func TestSections(t *testing.T) {
	checkRules(t, Options{Tool: "minimax_m2"},
		ruleCase{
			text:    `<minimax:tool_call><invoke name="f"></invoke> and <invoke name="g"><parameter name="a b">x</parameter></invoke></minimax:tool_call> end`,
			content: " and end", calls: []call{{name: "f", args: "{}"}, {name: "g", args: `{"a b": "x"}`}},
		},
		ruleCase{
			text:    `<minimax:tool_call><invoke name="f"></invoke><invoke name="g">oh</invoke><minimax:tool_call><invoke name="h"></invoke>`,
			content: `<invoke name="g">oh</invoke>`, calls: []call{{name: "f", args: "{}"}, {name: "h", args: "{}"}},
		},
	)
	checkRules(t, Options{Tool: "minimax_m2"}, asIs(`<invoke name="f"></invoke>`, `<minimax:tool_call></minimax:tool_call>`, `<minimax:tool_call>a<invoke name="f"></invoke>`)...)
	checkRules(t, Options{Tool: "kimi_k2"},
		ruleCase{
			text:  kimiSection + "<|tool_call_begin|>functions.a.b-c:12 " + kimiArgs + " {} <|tool_call_end|><|tool_calls_section_end|>",
			calls: []call{{"a.b-c", "functions.a.b-c:12", "{}"}},
		})
	checkRules(t, Options{Tool: "kimi_k2"}, asIs(kimiSection+"<|tool_call_begin|>functions.f"+kimiArgs+"{}<|tool_call_end|>")...)
	checkRules(t, Options{Tool: "dots"},
		ruleCase{text: "<dots_function_call>\n{\"name\": \"f\", \"arguments\": {}}\n</dots_function_call>", calls: one("f", "{}")})
	checkRules(t, Options{Tool: "deepseek_v32"},
		ruleCase{text: `<｜DSML｜function_calls><｜DSML｜invoke name="f">{"a": 1}</｜DSML｜invoke></｜DSML｜function_calls>`, calls: one("f", `{"a": 1}`)},
		ruleCase{
			text:  `<｜DSML｜function_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="false">oh</｜DSML｜parameter><｜DSML｜parameter name="b">1</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>`,
			calls: one("f", `{"a": "oh", "b": 1}`),
		})
}

func TestMiniMaxM3Rules(t *testing.T) {
	tag := func(s string) string { return strings.ReplaceAll(s, "~", m3Mark) }
	wrap := func(s string) string { return tag(`~<tool_call>~<invoke name="f">` + s + `~</invoke>~</tool_call>`) }
	checkRules(t, Options{Tool: "minimax_m3", Tools: []Tool{{"f", object(t, typeTools)}}},
		ruleCase{text: wrap("~<o>~<x>5~</x>~<y>5~</y>~<q>5~</q>~</o>"), calls: one("f", `{"o": {"x": "5", "y": 5, "q": 5}}`)},
		ruleCase{text: wrap("~<a>~<item>1~</item>~</a>"), calls: one("f", `{"a": ["1"]}`)},
		ruleCase{text: wrap("~<a>~</a>~<s>~</s>~<o>~</o>"), calls: one("f", `{"a": [], "s": "", "o": {}}`)},
		ruleCase{text: wrap("~<u>\n ~<item>~<k>1~</k>~</item>\n~<item>x~</item>~</u>"), calls: one("f", `{"u": [{"k": 1}, "x"]}`)},
		ruleCase{text: wrap("~<s><b>bold</b>]<~</s>"), calls: one("f", `{"s": "<b>bold</b>]<"}`)},
	)
	checkRules(t, Options{Tool: "minimax_m3"}, asIs(wrap("~<a>~</b>"), wrap("~<a>x~<b>~</b>~</a>"), tag("~<invoke>"))...)
}

func TestGemmaRules(t *testing.T) {
	checkRules(t, Options{Tool: "gemma4"},
		ruleCase{text: `<|tool_call>call:f{ a : -1.5e3 , b:[],c:{d:null}, <|"|>e f<|"|>:True,s:<|"|>{"x"},<|"|> } <tool_call|>`, calls: one("f", `{"a": -1.5e3, "b": [], "c": {"d": null}, "e f": true, "s": "{\"x\"},"}`)})
	checkRules(t, Options{Tool: "gemma4"}, asIs(`<|tool_call>call:f{a:b}<tool_call|>`, `<|tool_call>call:f{a:1`, `<|tool_call>call:f{a:01}<tool_call|>`, `<|tool_call>call:{}<tool_call|>`)...)
}

func TestOtherRules(t *testing.T) {
	checkRules(t, Options{Tool: "minicpm5"},
		ruleCase{text: `<function name="f"><param name="a"><![CDATA[x</param>]]]]><![CDATA[>]]></param></function>`, calls: one("f", `{"a": "x</param>]]>"}`)})
	checkRules(t, Options{Tool: "command_r"},
		ruleCase{text: "Action: ```json\n[{\"tool_name\": \"directly-answer\", \"parameters\": {}}]\n```\nIt rains.", content: "It rains."})
	checkRules(t, Options{Tool: "functionary_v32"},
		ruleCase{text: "all\nIn Python:\n>>> f()\n5>>>f\n{}", content: "In Python:\n>>> f()\n5", calls: one("f", "{}")},
		ruleCase{text: "f\n{\"a\": 1}\n>>>g\n{}>>>all\nok", content: "ok", calls: []call{{name: "f", args: `{"a": 1}`}, {name: "g", args: "{}"}}})
	checkRules(t, Options{Tool: "functionary_v32"}, asIs("Hello\nyou", "f\n{", "Hello", "f()\n{}")...)
	checkRules(t, Options{Tool: "xlam"},
		ruleCase{text: `[{"name": "f", "arguments": {}}]`, calls: one("f", "{}")},
		ruleCase{text: "ok ```json\n[{\"name\": \"f\", \"arguments\": {}}]\n```", content: "ok", calls: one("f", "{}")},
		ruleCase{text: "<tool_call>[{\"name\": \"f\", \"arguments\": {}}]</tool_call>", calls: one("f", "{}")},
		ruleCase{text: "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}]", calls: one("f", "{}")})
	checkRules(t, Options{Tool: "xlam"}, asIs("[1]", "```json\n[]\n```", "see [{\"name\": \"f\", \"arguments\": {}}]")...)
	checkRules(t, Options{Tool: "apertus"}, asIs(`<|tools_prefix|>[{"f": {}, "g": {}}]<|tools_suffix|>`, `<|tools_prefix|>[]<|tools_suffix|>`, `<|tools_prefix|>[{"f": 1}]<|tools_suffix|>`)...)
	checkRules(t, Options{Tool: "glm47"}, asIs("<tool_call>do it</tool_call>", "<tool_call>\nf</tool_call>", "<tool_call>f<arg_key>a</arg_key></tool_call>")...)
	checkRules(t, Options{Tool: "kimi_k3"},
		ruleCase{
			text: `<|open|>tools<|sep|><|open|>call tool="f"<|sep|><|open|>argument key="a" type="array"<|sep|>[oh<|close|>argument<|sep|>` +
				`<|open|>argument key="b"<|sep|>5<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>`,
			calls: one("f", `{"a": "[oh", "b": 5}`),
		},
		ruleCase{
			text: `<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="a&quot;&amp;quot;" type="number"<|sep|>1.0<|close|>argument<|sep|><|close|>call<|sep|>` +
				`<|open|>call index="2"<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>`,
			content: `<|open|>call index="2"<|sep|><|close|>call<|sep|>`, calls: one("f", `{"a\"&quot;": 1.0}`),
		})
}

func TestChannelRules(t *testing.T) {
	checkRules(t, Options{Tool: "harmony"},
		ruleCase{text: "plain", content: "plain"},
		ruleCase{text: "<|start|>assistant<|channel|>analysis<|message|>r1<|end|><|start|>assistant<|channel|>analysis<|message|>r2<|channel|>final<|message|>a<|return|>", content: "a", reasoning: "r1r2"},
		ruleCase{text: " to=functions.f<|channel|>commentary json<|message|>{}", calls: one("f", "{}")},
		ruleCase{text: "<|channel|>commentary to=browser.search<|message|>{\"q\": 1}<|call|>", calls: one("browser.search", `{"q": 1}`)},
		ruleCase{text: "<|channel|>final<|message|>a<|channel|>b <|end", content: "a<|channel|>b <|end"},
		ruleCase{text: "<|channel|>commentary to=functions.f<|message|>{oh<|call|><|start|>assistant<|channel|>final<|message|>sorry", content: "<|channel|>commentary to=functions.f<|message|>{oh<|call|>sorry"},
	)
	checkRules(t, Options{Reasoning: "harmony", PromptOpen: true},
		ruleCase{text: "r<|end|><|start|>assistant<|channel|>final<|message|>a", content: "a", reasoning: "r"})
	checkRules(t, Options{Reasoning: "muse"},
		ruleCase{text: "to=self<|message|>r<|eom|><|start|>assistant to=user<|message|>a <|eot|>", content: "a", reasoning: "r"},
		ruleCase{text: " to=f<|message|>oh<|eom|><|start|>assistant to=user<|message|>a<|eot|>", content: " to=f<|message|>oh<|eom|>a"})
	checkRules(t, Options{Reasoning: "inkling"},
		ruleCase{text: "<|message_model|><|content_thinking|>r<|end_message|><|message_model|><|content_image|>x<|end_message|>", content: "<|message_model|><|content_image|>x<|end_message|>", reasoning: "r"},
		ruleCase{text: "<|message_model|>f<|content_invoke_tool_json|>{\"name\": \"f\", \"args\": {}}", calls: one("f", "{}")})
	checkRules(t, Options{Reasoning: "kimi_k3"},
		ruleCase{text: "a<|close|>response<|sep|><|close|>message<|sep|>", content: "a"},
		ruleCase{text: "<|open|>think<|sep|>r<|close|>think<|sep|><|open|>response<|sep|>a<|close|>response<|sep|><|close|>response<|sep|>", content: "a<|close|>response<|sep|>", reasoning: "r"})
}

func TestReasoningRules(t *testing.T) {
	checkRules(t, Options{Reasoning: "qwen3"},
		ruleCase{text: "\n<think>\n r \n</think>\n\na</think>b", content: "a</think>b", reasoning: "r"},
		ruleCase{text: "<think>\n\n</think>\n\na", content: "a"},
		ruleCase{text: "a <think>b</think>", content: "a <think>b</think>"},
		ruleCase{text: "a</think>b", content: "a</think>b"},
		ruleCase{text: "<think>r</thin", reasoning: "r</thin"},
		ruleCase{text: " <thin", content: " <thin"},
		ruleCase{text: "<think>r <think> s</think>", reasoning: "r <think> s"},
		ruleCase{text: " \n", content: " \n"},
	)
	checkRules(t, Options{Reasoning: "qwen3", PromptOpen: true},
		ruleCase{text: "\n<think>r</think>a", content: "a", reasoning: "r"},
		ruleCase{text: "r\n", reasoning: "r\n"})
	checkRules(t, Options{Reasoning: "kimi_k2", Tool: "kimi_k2"},
		ruleCase{text: "<think>r " + kimiSection + "<|tool_call_begin|>functions.f:0" + kimiArgs + "{}<|tool_call_end|><|tool_calls_section_end|>", reasoning: "r", calls: []call{{"f", "functions.f:0", "{}"}}},
		ruleCase{text: "<think>r " + kimiSection + "x", content: kimiSection + "x", reasoning: "r"})
	checkRules(t, Options{Reasoning: "mistral"},
		ruleCase{text: "a [THINK]r[/THINK] b", content: "a b", reasoning: "r"})
	checkRules(t, Options{Reasoning: "granite"},
		ruleCase{text: "Here's my thought process: r\n\nHere's my response: a", content: "a", reasoning: "r"})
	checkRules(t, Options{Reasoning: "granite_33"},
		ruleCase{text: "<think>r</think><response> a </response>\n", content: "a", reasoning: "r"},
		ruleCase{text: "<response>a</response></response>", content: "a</response>"},
		ruleCase{text: "a</response>", content: "a</response>"})
	checkRules(t, Options{Reasoning: "apriel", PromptOpen: true},
		ruleCase{text: "r\n[BEGIN FINAL RESPONSE]\na\n[END FINAL RESPONSE]\n", content: "a", reasoning: "r"})
	checkRules(t, Options{Reasoning: "seed_oss"},
		ruleCase{text: "<seed:think>r<seed:cot_budget_reflect>n</seed:cot_budget_reflect></seed:think>a", content: "a", reasoning: "r<seed:cot_budget_reflect>n</seed:cot_budget_reflect>"})
	checkRules(t, Options{Reasoning: "minimax_m3"},
		ruleCase{text: "</mm:think>a", content: "a"})
	checkRules(t, Options{Tool: "ernie45"},
		ruleCase{text: "</think>\n\n<response>\na\n</response>\n", content: "a"})
	checkRules(t, Options{Reasoning: "minimax_m2_append_think"},
		ruleCase{text: "<think>r</think>a", content: "<think>r</think>a"})
	checkRules(t, Options{Tool: "cohere_command4"},
		ruleCase{text: "<|START_THINKING|>r<|END_THINKING|><|START_TEXT|>a<|END_TEXT|>", content: "a", reasoning: "r"})
	checkRules(t, Options{Reasoning: "deepseek_v31", Tool: "hermes"},
		ruleCase{text: "<think>r<tool_call></think>\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", reasoning: "r<tool_call>", calls: one("f", "{}")})
}

// TestTogether: what is sent when. Content is not held back longer than needed, and a call comes at its end.
func TestTogether(t *testing.T) {
	p, err := New(Options{Tool: "hermes", Reasoning: "qwen3"})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		text string
		want []Event
	}{
		{"<thi", nil},
		{"nk>\nso", []Event{{Kind: Reasoning, Text: "so"}}},
		{" x\n</thi", []Event{{Kind: Reasoning, Text: " x"}}},
		{"n</think>\n\nHi \xc3", []Event{{Kind: Reasoning, Text: "\n</thin"}, {Kind: Content, Text: "Hi "}}},
		{"\xbc <b", []Event{{Kind: Content, Text: "ü <b"}}},
		{"\n<tool_call>x", []Event{{Kind: Content, Text: "\n<tool_call>x"}}},
		{"\n<tool_call>{\"name\": \"f\", \"arguments\": {}}", nil},
		{"</tool_call>\n", []Event{{Kind: CallBegin, Name: "f"}, {Kind: CallArguments, Text: "{}"}, {Kind: CallEnd}}},
	} {
		if got := p.Write(step.text); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%q: %+v, want %+v", step.text, got, step.want)
		}
	}
	if got := p.Close(); got != nil {
		t.Errorf("at the end: %+v", got)
	}
	if got := append(p.Write("x"), p.Close()...); got != nil {
		t.Errorf("after the end: %+v", got)
	}
}

func TestNew(t *testing.T) {
	for _, o := range []Options{{Tool: "x"}, {Reasoning: "x"}, {Tool: "hermes", Reasoning: "harmony"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v: no error", o)
		} else if o.Tool == "x" && !strings.Contains(err.Error(), "hermes, hunyuan_a13b") {
			t.Errorf("the error names no dialects: %v", err)
		}
	}
}

// TestNone: none is what is chosen, even where the dialect of calls has one of reasoning, unless both are messages of
// one form.
func TestNone(t *testing.T) {
	checkRules(t, Options{Tool: None, Reasoning: None}, asIs("<think>a</think><tool_call>{}")...)
	checkRules(t, Options{Tool: "cohere_command3"}, ruleCase{text: "<|START_THINKING|>a<|END_THINKING|>b", reasoning: "a", content: "b"})
	checkRules(t, Options{Tool: "cohere_command3", Reasoning: None}, asIs("<|START_THINKING|>a<|END_THINKING|>b")...)
	checkRules(t, Options{Tool: "harmony", Reasoning: None},
		ruleCase{text: "<|channel|>analysis<|message|>a<|end|>", reasoning: "a"})
}

// TestAliases: what docs/dialects.md has in brackets is known, and no alias hides a dialect.
func TestAliases(t *testing.T) {
	for _, name := range ToolNames() {
		if toolAlias(name) != name {
			t.Errorf("%s is an alias", name)
		}
	}
	for _, name := range ReasoningNames() {
		if reasoningAlias(name) != name {
			t.Errorf("%s is an alias", name)
		}
	}
	for _, o := range []Options{
		{Tool: "qwen2.5"}, {Tool: "qwen3.6"}, {Tool: "mistral"}, {Tool: "llama4_json"}, {Tool: "watt"}, {Tool: "deepseek_r1"}, {Tool: "poolside_v1"},
		{Tool: "glm5"}, {Tool: "apriel"}, {Tool: "openai"}, {Tool: "intern-s1"}, {Tool: "firefunction_v2"}, {Reasoning: "step3"}, {Reasoning: "mimo"},
		{Reasoning: "nemotron_v3"}, {Reasoning: "deepseek_v41"}, {Reasoning: "ling3"}, {Reasoning: "openai"}, {Reasoning: "cohere_command4"},
	} {
		p, err := New(o)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		p.Close()
	}
}

func TestReadTools(t *testing.T) {
	v, err := chat.ParseJSON([]byte(`[{"type": "function", "function": {"name": "a", "parameters": {}}}, {"name": "b", "input_schema": {"x": 1}}, {"name": "c"}]`))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := ReadTools(v.([]any))
	if err != nil || len(tools) != 3 || tools[0].Parameters == nil || tools[1].Parameters.Get("x") != int64(1) || tools[2].Parameters != nil {
		t.Errorf("%+v, %v", tools, err)
	}
	if _, err := ReadTools([]any{&chat.Object{}}); err == nil {
		t.Error("a tool without a name is taken")
	}
}
