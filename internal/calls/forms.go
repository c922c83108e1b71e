package calls

import (
	"strings"

	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar/cfg"
)

// A form is how a dialect writes calls: open, calls with sep between them, end. In its texts $name is the tool's name,
// $quoted the same in a JSON string, $args are the arguments; $digits, $id and $space are what their names say.
type form struct {
	open, call, sep, end string
	args                 func(w *writer, t *tool) (cfg.Expr, error) // nil: a JSON object

	// Of pairs. In pair, $key and $value are an argument, $type and $string say which type it has.
	pair string
	ends []string // texts that end a value, and so are never in it

	trigger string // in an answer with text it begins calls
	start   string // at the beginning of an answer it does so; white space may stand before it and behind its brackets
	lead    string // stands before calls in the midst of text
	aside   string // is read as a call of nothing
	also    *form  // another way to begin calls that is read
	single  bool   // one call an answer
	word    func(name string) bool
	taken   []string // names that mean something else
}

// formOf is how a dialect writes calls, nil if there is none of the name.
func formOf(name string) *form {
	if name = dialect.ToolName(name); name == "" {
		return nil
	}
	f := forms()[name]
	return &f
}

const (
	argumentsCall  = `{"name": "$quoted", "arguments": $args}`
	parametersCall = `{"name": "$quoted", "parameters": $args}`
	cohereOpen     = "<|START_ACTION|>[\n    "
	cohereCall     = `{"tool_call_id": "$digits", "tool_name": "$quoted", "parameters": $args}`
	m3             = "]<]minimax[>["
)

// forms are how all dialects write calls.
func forms() map[string]form {
	return map[string]form{
		"apertus":           {open: "<|tools_prefix|>[", call: `{"$quoted": $args}`, sep: ", ", end: "]<|tools_suffix|>", trigger: "<|tools_prefix|>"},
		"cohere_command3":   {open: cohereOpen, call: cohereCall, sep: ",\n    ", end: "\n]<|END_ACTION|>", trigger: "<|START_ACTION|>"},
		"cohere_command4":   {open: cohereOpen, call: cohereCall, sep: ",\n    ", end: "\n]<|END_ACTION|>", trigger: "<|START_ACTION|>"},
		"command_r":         {open: "Action: ```json\n[\n    ", call: commandRCall, sep: ",\n    ", end: "\n]\n```", trigger: "Action: ```json", aside: directAnswer, taken: []string{"directly-answer", "directly_answer"}},
		"deepseek_v3":       deepseek("function<｜tool▁sep｜>$name\n```json\n$args\n```", "\n"),
		"deepseek_v31":      deepseek("$name<｜tool▁sep｜>$args", ""),
		"deepseek_v32":      dsml("<｜DSML｜", "</｜DSML｜", "function_calls"),
		"deepseek_v4":       dsml("<｜DSML｜", "</｜DSML｜", "tool_calls"),
		"deepseek_v41":      dsml("<｜DSML｜ ", "</｜DSML｜ ", "calls"),
		"dots":              invokes("dots_function_call"),
		"ernie45":           tagged("<tool_call>\n", "\n</tool_call>", "\n"),
		"functionary_v32":   {call: "$name\n$args", sep: ">>>", trigger: ">>>$name\n", lead: ">>>", start: "$name\n", taken: []string{"all"}},
		"functiongemma":     gemma("<start_function_call>", "<end_function_call>", "<escape>"),
		"gemma4":            gemma("<|tool_call>", "<tool_call|>", `<|"|>`),
		"gigachat3":         {call: "<|message_sep|>\n\nfunction call<|role_sep|>\n" + argumentsCall, trigger: "<|message_sep|>\n\nfunction call<|role_sep|>", single: true},
		"gigachat31":        {call: "<|function_call|>" + argumentsCall, trigger: "<|function_call|>", single: true},
		"glm45":             glm("tool_call", "\n", "\n", "\n"),
		"glm47":             glm("tool_call", "", "", ""),
		"granite":           {open: "<|tool_call|>[", call: argumentsCall, sep: ", ", end: "]", trigger: "<|tool_call|>", also: &form{open: "<tool_call>[", call: argumentsCall, sep: ", ", end: "]", trigger: "<tool_call>"}},
		"granite_20b_fc":    {call: "<function_call> " + argumentsCall, sep: "\n", trigger: "<function_call>"},
		"harmony":           {call: "<|channel|>commentary to=functions.$name <|constrain|>json<|message|>$args", sep: "<|call|><|start|>assistant"},
		"hermes":            tagged("<tool_call>\n", "\n</tool_call>", "\n"),
		"hunyuan_a13b":      {open: "<tool_calls>[", call: argumentsCall, sep: ", ", end: "]</tool_calls>", trigger: "<tool_calls>"},
		"hy_v3":             hyV3(""),
		"hy_v3_opensource":  hyV3(":opensource"),
		"inkling":           {call: `<|message_model|>$name<|content_invoke_tool_json|>{"name": "$quoted", "args": $args}`, sep: "<|end_message|>"},
		"internlm2":         {call: "<|action_start|><|plugin|>\n" + parametersCall + "<|action_end|>", trigger: "<|action_start|>"},
		"iquest_q1":         glm("iquest_tool_call", "", "", ""),
		"kimi_k2":           {open: "<|tool_calls_section_begin|>", call: "<|tool_call_begin|>functions.$name:$digits<|tool_call_argument_begin|>$args<|tool_call_end|>", end: "<|tool_calls_section_end|>", trigger: "<|tool_calls_section_begin|>"},
		"kimi_k3":           kimiK3(),
		"lfm2":              {open: "<|tool_call_start|>[", call: "$name($args)", sep: ", ", end: "]<|tool_call_end|>", args: python, word: pyName, trigger: "<|tool_call_start|>"},
		"lfm2_json":         {open: "<|tool_call_start|>[", call: argumentsCall, sep: ", ", end: "]<|tool_call_end|>", trigger: "<|tool_call_start|>"},
		"ling3":             {call: "<tool_call>$name\n$args\n</tool_call>", sep: "\n", args: pairs, pair: "<arg_key>$key</arg_key>\n<arg_value>$value</arg_value>", ends: []string{"</arg_value>"}, trigger: "<tool_call>"},
		"llama3_json":       {call: parametersCall, sep: "; ", start: `{"name"`, also: &form{open: "<|python_tag|>", call: parametersCall, sep: "; ", trigger: "<|python_tag|>"}},
		"llama3_python_tag": {open: "<|python_tag|>", call: parametersCall, sep: "; ", trigger: "<|python_tag|>"},
		"llama4_pythonic":   {open: "<|python_start|>[", call: "$name($args)", sep: ", ", end: "]<|python_end|>", args: python, word: pyName, trigger: "<|python_start|>", also: &form{open: "[", call: "$name($args)", sep: ", ", end: "]", args: python, word: pyName, start: "[$name("}},
		"longcat":           tagged("<longcat_tool_call>", "</longcat_tool_call>", "\n"),
		"mimo":              functions("tool_call", ""),
		"minicpm5":          {call: `<function name="$name">$args</function>`, sep: "\n", args: pairs, pair: `<param name="$key">$value</param>`, ends: []string{"</param>", "<![CDATA["}, trigger: `<function name="`},
		"minimax_m1":        {open: "<tool_calls>\n", call: argumentsCall, sep: "\n", end: "\n</tool_calls>", trigger: "<tool_calls>"},
		"minimax_m2":        invokes("minimax:tool_call"),
		"minimax_m3":        {open: m3 + "<tool_call>\n", call: m3 + `<invoke name="$name">$args` + m3 + "</invoke>", sep: "\n", end: "\n" + m3 + "</tool_call>", args: elements, ends: []string{m3}, trigger: m3 + "<tool_call>"},
		"mistral_args":      {call: "[TOOL_CALLS]$name[ARGS]$args", trigger: "[TOOL_CALLS]"},
		"mistral_callid":    {call: "[TOOL_CALLS]$name[CALL_ID]$id[ARGS]$args", trigger: "[TOOL_CALLS]"},
		"mistral_json":      {open: "[TOOL_CALLS]$space[", call: argumentsCall, sep: ", ", end: "]", trigger: "[TOOL_CALLS]"},
		"muse":              muse(),
		"nemotron_v2":       {open: "<TOOLCALL>[", call: argumentsCall, sep: ", ", end: "]</TOOLCALL>", trigger: "<TOOLCALL>"},
		"olmo3":             {open: "<function_calls>\n", call: "$name($args)", sep: "\n", end: "\n</function_calls>", args: python, word: pyName, trigger: "<function_calls>"},
		"phi4_mini":         {open: "functools[", call: argumentsCall, sep: ", ", end: "]", trigger: "functools["},
		"plamo3":            plamo3(),
		"pythonic":          {open: "[", call: "$name($args)", sep: ", ", end: "]", args: python, word: pyName, start: "[$name("},
		"qwen3_coder":       functions("tool_call", "\n"),
		"seed_oss":          functions("seed:tool_call", ""),
		"spark25":           glm("tool_call", "", "", ""),
		"step3":             step3(),
		"xlam":              {open: "[", call: argumentsCall, sep: ", ", end: "]", start: `[{"name"`},
		"xlam_fence":        {open: "```json\n[", call: argumentsCall, sep: ", ", end: "]\n```", trigger: "```json\n[{\"name\""},
	}
}

// commandRCall has the spaces of the template, but for those within the arguments.
const commandRCall = "{\n        \"tool_name\": \"$quoted\",\n        \"parameters\": $args\n    }"

// directAnswer is what Command R writes in front of an answer that calls nothing.
const directAnswer = "Action: ```json\n[\n    {\n        \"tool_name\": \"directly-answer\",\n        \"parameters\": {}\n    }\n]\n```"

// tagged is a JSON object between marks.
func tagged(open, end, sep string) form {
	return form{call: open + argumentsCall + end, sep: sep, trigger: strings.TrimSpace(open)}
}

func deepseek(call, sep string) form {
	return form{
		open: "<｜tool▁calls▁begin｜>", call: "<｜tool▁call▁begin｜>" + call + "<｜tool▁call▁end｜>", sep: sep, end: "<｜tool▁calls▁end｜>",
		trigger: "<｜tool▁calls▁begin｜>",
	}
}

// dsml says of each parameter whether it is a string; open and end begin tags.
func dsml(open, end, section string) form {
	return form{
		open: open + section + ">\n", call: open + `invoke name="$name">` + "\n$args" + end + "invoke>", sep: "\n", end: "\n" + end + section + ">",
		args: pairs, pair: open + `parameter name="$key" string="$string">$value` + end + "parameter>\n", ends: []string{end + "parameter>"},
		trigger: open + section + ">",
	}
}

// invokes is how MiniMax M2 writes calls.
func invokes(section string) form {
	return form{
		open: "<" + section + ">\n", call: `<invoke name="$name">` + "\n$args</invoke>", sep: "\n", end: "\n</" + section + ">",
		args: pairs, pair: `<parameter name="$key">$value</parameter>` + "\n", ends: []string{"</parameter>"},
		trigger: "<" + section + ">",
	}
}

// glm is a name and pairs; sep stands between calls, name behind the name, line behind each tag.
func glm(tag, name, line, sep string) form {
	return form{
		call: "<" + tag + ">$name" + name + "$args</" + tag + ">", sep: sep,
		args: pairs, pair: "<arg_key>$key</arg_key>" + line + "<arg_value>$value</arg_value>" + line, ends: []string{"</arg_value>"},
		trigger: "<" + tag + ">",
	}
}

// hyV3 has the same pairs in a section.
func hyV3(suffix string) form {
	tag := func(name string) string { return "<" + name + suffix + ">" }
	return form{
		open: tag("tool_calls") + "\n", call: tag("tool_call") + "$name" + tag("tool_sep") + "\n$args" + tag("/tool_call"), sep: "\n", end: "\n" + tag("/tool_calls"),
		args: pairs, pair: tag("arg_key") + "$key" + tag("/arg_key") + "\n" + tag("arg_value") + "$value" + tag("/arg_value") + "\n",
		ends: []string{tag("/arg_value")}, trigger: tag("tool_calls"),
	}
}

// functions is how Qwen3-Coder writes calls; the outer tag may be missing.
func functions(tag, around string) form {
	f := form{
		call: "<function=$name>\n$args</function>", sep: "\n", args: pairs,
		pair: "<parameter=$key>" + around + "$value" + around + "</parameter>\n",
		ends: []string{"</parameter>", "<parameter=", "</function>"}, trigger: "<function=",
	}
	bare := f
	f.call, f.trigger, f.also = "<"+tag+">\n"+f.call+"\n</"+tag+">", "<"+tag+">", &bare
	return f
}

func step3() form {
	return form{
		open: "<｜tool_calls_begin｜>", end: "<｜tool_calls_end｜>", trigger: "<｜tool_calls_begin｜>",
		call: `<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="$name">$args</steptml:invoke><｜tool_call_end｜>`,
		args: pairs, pair: `<steptml:parameter name="$key">$value</steptml:parameter>`, ends: []string{"</steptml:parameter>"},
	}
}

func plamo3() form {
	tag := func(name string) string { return "<|plamo:" + name + ":plamo|>" }
	return form{
		open: tag("begin_tool_requests"), end: tag("end_tool_requests"), trigger: tag("begin_tool_requests"),
		call: tag("begin_tool_request") + tag("begin_tool_name") + "$name" + tag("end_tool_name") + tag("begin_tool_arguments") +
			"<|plamo:constrain|>json<|plamo:msg|>$args" + tag("end_tool_arguments") + tag("end_tool_request"),
	}
}

func kimiK3() form {
	return form{
		open: "<|open|>tools<|sep|>", end: "<|close|>tools<|sep|>",
		call: `<|open|>call tool="$name" index="$digits"<|sep|>$args<|close|>call<|sep|>`,
		args: pairs, pair: `<|open|>argument key="$key" type="$type"<|sep|>$value<|close|>argument<|sep|>`, ends: []string{"<|close|>argument<|sep|>"},
		word: func(name string) bool { return rawName(name) && !strings.ContainsAny(name, "&") },
	}
}

func muse() form {
	return form{
		call: " to=$name<|message|><atem:function_calls>\n" + `<atem:invoke name="$name">` + "\n$args</atem:invoke>\n</atem:function_calls>", sep: "<|eom|><|start|>assistant",
		args: pairs, pair: `<atem:parameter name="$key">$value</atem:parameter>` + "\n", ends: []string{"</atem:parameter>"},
		taken: []string{"self", "user", "commentary"},
	}
}

// gemma is an object in the spelling of Gemma's models; strings stand between quote.
func gemma(open, end, quote string) form {
	return form{
		call: open + "call:$name$args" + end, trigger: open,
		args: func(w *writer, t *tool) (cfg.Expr, error) { return gemmaObject(w, t, quote) },
	}
}
