package dialect

import "strings"

// A rule chooses a dialect where a template has all of its texts, or a model's name its part.
type rule struct {
	dialect string
	has     []string
	named   string // part of the model's name, in lower case; "": any
}

// toolRules choose the dialect of calls: the first that fits. More particular ones stand first.
func toolRules() []rule {
	return []rule{
		{dialect: "harmony", has: []string{harmonyChannel, "<|start|>"}},
		{dialect: "muse", has: []string{"<atem:function_calls>"}},
		{dialect: "inkling", has: []string{"<|message_model|>"}},
		{dialect: "kimi_k3", has: []string{k3Open, k3Sep}},
		{dialect: "kimi_k2", has: []string{kimiSection}},
		{dialect: "plamo3", has: []string{"<|plamo:"}},
		{dialect: "minimax_m3", has: []string{m3Mark}},
		{dialect: "minimax_m2", has: []string{miniMaxOpen}},
		{dialect: "dots", has: []string{dotsOpen}},
		{dialect: "deepseek_v32", has: []string{dsmlBar, "function_calls>"}},
		{dialect: "deepseek_v41", has: []string{dsmlBar, " calls>"}},
		{dialect: "deepseek_v4", has: []string{dsmlBar}},
		{dialect: "deepseek_v3", has: []string{deepseekCall, "```json"}},
		{dialect: "deepseek_v31", has: []string{deepseekCall}},
		{dialect: "step3", has: []string{step3Open}},
		{dialect: "seed_oss", has: []string{"<seed:tool_call>"}},
		{dialect: "longcat", has: []string{"<longcat_tool_call>"}},
		{dialect: "iquest_q1", has: []string{"<iquest_tool_call>"}},
		{dialect: "hy_v3_opensource", has: []string{"<tool_sep", "<arg_key", "':opensource'"}},
		{dialect: "hy_v3_opensource", has: []string{"<tool_sep:opensource>"}},
		{dialect: "hy_v3", has: []string{"<tool_sep", "<arg_key"}},
		{dialect: "ling3", has: []string{"<arg_key>", "<|role_end|>"}},
		{dialect: "spark25", has: []string{"<arg_key>", "<|Bot|>"}},
		{dialect: "glm45", has: []string{"</arg_key>\n"}},
		{dialect: "glm45", has: []string{`</arg_key>\n`}},
		{dialect: "glm47", has: []string{"<arg_key>"}},
		{dialect: "mimo", has: []string{"<tool_call>", xmlFunction}, named: "mimo"},
		{dialect: "qwen3_coder", has: []string{"<tool_call>", xmlFunction}},
		{dialect: "", has: []string{xmlFunction, "</function>"}}, // JSON in a function tag: Functionary 3.1
		{dialect: "minicpm5", has: []string{"<function name=", "<param name="}},
		{dialect: "lfm2", has: []string{lfm2Open}},
		{dialect: "lfm2", has: []string{"<|tool_list_start|>"}},
		{dialect: "lfm2", has: []string{`"List of tools: ["`}},
		{dialect: "mistral_callid", has: []string{"[TOOL_CALLS]", "[CALL_ID]"}},
		{dialect: "mistral_args", has: []string{"[TOOL_CALLS]", "[ARGS]"}},
		{dialect: "mistral_json", has: []string{"[TOOL_CALLS]"}},
		{dialect: "gigachat31", has: []string{"<|function_call|>", "<|role_sep|>"}},
		{dialect: "gigachat3", has: []string{"function call", "<|role_sep|>"}},
		{dialect: "internlm2", has: []string{"<|action_start|>"}},
		{dialect: "phi4_mini", has: []string{"functools"}},
		{dialect: "nemotron_v2", has: []string{"<TOOLCALL>"}},
		{dialect: "cohere_command4", has: []string{"<|START_ACTION|>", "<|START_TEXT|>"}},
		{dialect: "cohere_command3", has: []string{"<|START_ACTION|>"}},
		{dialect: "command_r", has: []string{"Action:", "directly-answer"}},
		{dialect: "command_r", has: []string{"Action:", "directly_answer"}},
		{dialect: "apertus", has: []string{"<|tools_prefix|>"}},
		{dialect: "functiongemma", has: []string{"<start_function_call>"}},
		{dialect: "gemma4", has: []string{"<|tool_call>"}},
		{dialect: "olmo3", has: []string{"<function_calls>"}},
		{dialect: "hunyuan_a13b", has: []string{"<tool_calls>["}},
		{dialect: "minimax_m1", has: []string{"<tool_calls>"}},
		{dialect: "granite", has: []string{"<|tool_call|>"}},
		{dialect: "granite_20b_fc", has: []string{"<function_call>"}},
		{dialect: "functionary_v32", has: []string{">>>", "recipient"}},
		{dialect: "xlam", has: []string{"make calls in a single JSON array"}},
		{dialect: "xlam", named: "xlam"},
		{dialect: "ernie45", has: []string{"<tool_call>", "<response>"}},
		{dialect: "hermes", has: []string{"<tool_call>"}},
		{dialect: "llama4_pythonic", has: []string{pythonStart}},
		{dialect: "pythonic", has: []string{"[func_name1(params_name1="}},
		{dialect: "llama3_json", has: []string{pythonTag}},
		{dialect: "llama3_json", has: []string{"<|start_header_id|>", `"parameters"`}},
		{dialect: "llama3_json", has: []string{"<|header_start|>", `"parameters"`}},
		{dialect: "hermes", named: "smollm3"},
		{dialect: "lfm2", named: "lfm2"},
		{dialect: "phi4_mini", named: "phi-4-mini"},
		{dialect: "olmo3", named: "olmo-3"},
		{dialect: "internlm2", named: "internlm"},
		{dialect: "pythonic", named: "toolace"},
	}
}

// reasoningRules choose the dialect of reasoning; tool, where set, is the dialect of calls that was chosen.
func reasoningRules() []struct {
	tool string
	rule
} {
	const thinks = "think>" // either tag
	return []struct {
		tool string
		rule
	}{
		{rule: rule{dialect: "apertus", has: []string{"<|inner_prefix|>"}}},
		{rule: rule{dialect: "apriel", has: []string{"[BEGIN FINAL RESPONSE]"}}},
		{rule: rule{dialect: "gemma4", has: []string{"<|channel>"}}},
		{rule: rule{dialect: "mistral", has: []string{"[THINK]"}}},
		{rule: rule{dialect: "minimax_m3", has: []string{"<mm:think>"}}},
		{rule: rule{dialect: "seed_oss", has: []string{"<seed:think>"}}},
		{rule: rule{dialect: "longcat", has: []string{"<longcat_think>"}}},
		{rule: rule{dialect: "kimi_vl", has: []string{"◁think▷"}}},
		{rule: rule{dialect: "plamo3", has: []string{"plamo:begin_think"}}},
		{rule: rule{dialect: cohereName, has: []string{"<|START_THINKING|>"}}},
		{tool: "hy_v3_opensource", rule: rule{dialect: "hy_v3_opensource"}},
		{tool: "hy_v3", rule: rule{dialect: "qwen3", has: []string{"<think"}}},
		{tool: "minimax_m2", rule: rule{dialect: "minimax_m2", has: []string{thinks}}},
		{tool: "kimi_k2", rule: rule{dialect: "kimi_k2", has: []string{thinks}}},
		{tool: "kimi_k2", rule: rule{dialect: "kimi_k2", named: "think"}},
		{tool: "deepseek_v3", rule: rule{dialect: "deepseek_r1", has: []string{thinks}}},
		{tool: "deepseek_v31", rule: rule{dialect: "deepseek_v31", has: []string{thinks}}},
		{tool: "deepseek_v32", rule: rule{dialect: "deepseek_v32"}},
		{tool: "deepseek_v4", rule: rule{dialect: "deepseek_v32"}},
		{tool: "deepseek_v41", rule: rule{dialect: "deepseek_v32"}},
		{tool: "glm45", rule: rule{dialect: "glm45", has: []string{thinks}}},
		{tool: "glm47", rule: rule{dialect: "glm47", has: []string{thinks}}},
		{tool: "spark25", rule: rule{dialect: "glm47", has: []string{thinks}}},
		{tool: "ling3", rule: rule{dialect: "glm47", has: []string{thinks}}},
		{tool: "step3", rule: rule{dialect: "deepseek_r1", has: []string{thinks}}},
		{tool: "qwen3_coder", rule: rule{dialect: "step3p5", has: []string{thinks}, named: "step"}},
		{tool: "qwen3_coder", rule: rule{dialect: "qwen3_5", has: []string{thinks}}},
		{tool: "olmo3", rule: rule{dialect: "olmo3", has: []string{thinks}}},
		{tool: "ernie45", rule: rule{dialect: "ernie45"}},
		{tool: "hunyuan_a13b", rule: rule{dialect: "hunyuan_a13b", has: []string{thinks}}},
		{rule: rule{dialect: "granite_33", has: []string{thinks, "<response>", "<|start_of_role|>"}}},
		{rule: rule{dialect: "ernie45", has: []string{thinks, "<response>"}, named: "ernie"}},
		{rule: rule{dialect: "hunyuan_a13b", has: []string{thinks, "<answer>"}}},
		{rule: rule{dialect: "granite", has: []string{"Here is my thought process"}}},
		{rule: rule{dialect: "granite", named: "granite-3.2"}},
		{rule: rule{dialect: "deepseek_r1", has: []string{`assistant\n<think>\n'`}}},
		{rule: rule{dialect: "qwen3", has: []string{thinks}}},
	}
}

func (r *rule) fits(template, name string) bool {
	for _, text := range r.has {
		if !strings.Contains(template, text) {
			return false
		}
	}
	return strings.Contains(name, r.named)
}

// Detect chooses the dialects of calls and of reasoning by a chat template's text, and by the model's name where
// that says more; "": none. One that is chosen wrongly can be named instead.
func Detect(template, modelName string) (tool, reasoning string) {
	name := strings.ToLower(modelName)
	for _, r := range toolRules() {
		if r.fits(template, name) {
			tool = r.dialect
			break
		}
	}
	if t, ok := lookup(tools(), tool, toolName); ok && t.needs != "" {
		return tool, t.needs
	}
	for _, r := range reasoningRules() {
		if (r.tool == "" || r.tool == tool) && r.fits(template, name) {
			return tool, r.dialect
		}
	}
	return tool, ""
}

// PromptOpens reports whether a rendered prompt ends with the mark that opens the reasoning.
func PromptOpens(reasoning, prompt string) bool {
	r, ok := lookup(reasonings(), reasoningAlias(reasoning), reasoningName)
	if !ok {
		return false
	}
	prompt = strings.TrimRight(prompt, " \t\r\n")
	for _, open := range append(r.open, r.keep, r.opening) {
		if open != "" && strings.HasSuffix(prompt, open) {
			return true
		}
	}
	return false
}
