package dialect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spillway/spillway/internal/testutil"
)

// detected are the dialects of known templates: of calls, of reasoning.
var detected = map[string][2]string{
	"Apertus-8B-Instruct":                           {"apertus", "apertus"},
	"Apriel-1.6-15b-Thinker-fixed":                  {"hunyuan_a13b", "apriel"},
	"Bielik-11B-v3.0-Instruct":                      {"hermes", "qwen3"},
	"Cohere2MoE":                                    {"cohere_command4", "cohere_command3"},
	"CohereForAI-c4ai-command-r-plus-tool_use":      {"command_r", ""},
	"CohereForAI-c4ai-command-r7b-12-2024-tool_use": {"cohere_command3", "cohere_command3"},
	"GLM-4.6":                             {"glm45", "glm45"},
	"GLM-4.7-Flash":                       {"glm47", "glm47"},
	"GigaChat3-10B-A1.8B":                 {"gigachat3", ""},
	"GigaChat3.1-10B-A1.8B":               {"gigachat31", ""},
	"HuggingFaceTB-SmolLM3-3B":            {"hermes", "qwen3"},
	"Kimi-K2-Instruct":                    {"kimi_k2", ""},
	"Kimi-K3":                             {"kimi_k3", "kimi_k3"},
	"LFM2-8B-A1B":                         {"lfm2", ""},
	"LFM2.5-8B-A1B":                       {"lfm2", "qwen3"},
	"LFM2.5-Instruct":                     {"lfm2", "qwen3"},
	"MiMo-VL":                             {"hermes", ""},
	"MiniMax-M1":                          {"minimax_m1", ""},
	"MiniMax-M2":                          {"minimax_m2", "minimax_m2"},
	"MiniMax-M3":                          {"minimax_m3", "minimax_m3"},
	"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": {"qwen3_coder", "qwen3_5"},
	"NVIDIA-Nemotron-Nano-v2":             {"nemotron_v2", "qwen3"},
	"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": {"hermes", ""},
	"NousResearch-Hermes-3-Llama-3.1-8B-tool_use":   {"hermes", ""},
	"Qwen-QwQ-32B":             {"hermes", "deepseek_r1"},
	"Qwen-Qwen2.5-7B-Instruct": {"hermes", ""},
	"Qwen-Qwen3-0.6B":          {"hermes", "qwen3"},
	"Qwen3-Coder":              {"qwen3_coder", ""},
	"Qwen3.5-4B":               {"qwen3_coder", "qwen3_5"},
	"Reka-Edge":                {"hermes", "qwen3"},
	"Spark2.5":                 {"spark25", "glm47"},
	"StepFun3.5-Flash":         {"qwen3_coder", "step3p5"},
	"deepseek-ai-DeepSeek-R1-Distill-Llama-8B": {"deepseek_v3", "deepseek_r1"},
	"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": {"deepseek_v3", "deepseek_r1"},
	"deepseek-ai-DeepSeek-V3.1":                {"deepseek_v31", "deepseek_v31"},
	"deepseek-ai-DeepSeek-V3.2":                {"deepseek_v32", "deepseek_v32"},
	"deepseek-ai-DeepSeek-V4":                  {"deepseek_v4", "deepseek_v32"},
	"deepseek-ai-DeepSeek-V4-Flash-0731":       {"deepseek_v4", "deepseek_v32"},
	"deepseek_v3":                              {"deepseek_v3", ""},
	"fireworks-ai-llama-3-firefunction-v2":     {"phi4_mini", ""},
	"gemma2_rag":                               {"", ""},
	"gemma3":                                   {"", ""},
	"google-gemma-2-2b-it":                     {"", ""},
	"google-gemma-4-31B-it":                    {"gemma4", "gemma4"},
	"google-gemma-4-31B-it-interleaved":        {"gemma4", "gemma4"},
	"ibm-granite-granite-3.3-2B-Instruct":      {"granite", "granite_33"},
	"ibm-granite-granite-4.1":                  {"hermes", ""},
	"inclusionai-ling-3.0-flash":               {"ling3", "glm47"},
	"llama-cpp-deepseek-r1":                    {"deepseek_v3", "deepseek_r1"},
	"llama-cpp-rwkv-world":                     {"", "qwen3"},
	"llama3":                                   {"", ""},
	"llama3_1":                                 {"", ""},
	"meetkai-functionary-medium-v3.1":          {"", ""},
	"meetkai-functionary-medium-v3.2":          {"functionary_v32", ""},
	"meta-llama-Llama-3.1-8B-Instruct":         {"llama3_json", ""},
	"meta-llama-Llama-3.2-3B-Instruct":         {"llama3_json", ""},
	"meta-llama-Llama-3.3-70B-Instruct":        {"llama3_json", ""},
	"microsoft-Phi-3.5-mini-instruct":          {"", ""},
	"mistralai-Ministral-3-14B-Reasoning-2512": {"mistral_args", "mistral"},
	"mistralai-Mistral-Nemo-Instruct-2407":     {"mistral_json", ""},
	"moonshotai-Kimi-K2":                       {"kimi_k2", ""},
	"muse-glimmer":                             {"muse", "muse"},
	"openai-gpt-oss-120b":                      {"harmony", "harmony"},
	"openbmb-MiniCPM5-1B":                      {"minicpm5", "qwen3"},
	"poolside-Laguna-S-2.1":                    {"glm47", "glm47"},
	"poolside-Laguna-XS-2.1":                   {"glm45", "glm45"},
	"poolside-Laguna-XS.2":                     {"glm45", "glm45"},
	"qwen3":                                    {"hermes", "qwen3"},
	"tencent-Hy3":                              {"hy_v3_opensource", "hy_v3_opensource"},
	"unsloth-Apriel-1.5":                       {"hunyuan_a13b", "apriel"},
	"unsloth-mistral-Devstral-Small-2507":      {"mistral_args", ""},
	"upstage-Solar-Open-100B":                  {"", ""},
	"vllm-alpaca":                              {"", ""},
	"vllm-apertus":                             {"apertus", "apertus"},
	"vllm-chatglm":                             {"", ""},
	"vllm-chatglm2":                            {"", ""},
	"vllm-chatml":                              {"", ""},
	"vllm-deepseekr1":                          {"deepseek_v3", "deepseek_r1"},
	"vllm-deepseekv3":                          {"deepseek_v3", ""},
	"vllm-deepseekv31":                         {"deepseek_v31", "deepseek_v31"},
	"vllm-falcon":                              {"", ""},
	"vllm-falcon_180b":                         {"", ""},
	"vllm-functiongemma":                       {"functiongemma", ""},
	"vllm-gemma3_pythonic":                     {"pythonic", ""},
	"vllm-gemma4":                              {"gemma4", "gemma4"},
	"vllm-glm4":                                {"glm45", ""},
	"vllm-granite":                             {"granite", ""},
	"vllm-granite_20b_fc":                      {"granite_20b_fc", ""},
	"vllm-hermes":                              {"hermes", ""},
	"vllm-hunyuan_a13b":                        {"hunyuan_a13b", "hunyuan_a13b"},
	"vllm-inkbot":                              {"", ""},
	"vllm-internlm2_tool":                      {"internlm2", ""},
	"vllm-llama3.1_json":                       {"llama3_json", ""},
	"vllm-llama3.2_json":                       {"llama3_json", ""},
	"vllm-llama3.2_pythonic":                   {"pythonic", ""},
	"vllm-llama4_json":                         {"llama3_json", ""},
	"vllm-mistral":                             {"mistral_json", ""},
	"vllm-mistral3":                            {"mistral_json", ""},
	"vllm-mistral_parallel":                    {"mistral_json", ""},
	"vllm-muse_glimmer":                        {"muse", "muse"},
	"vllm-phi4_mini":                           {"phi4_mini", ""},
	"vllm-qwen3coder":                          {"qwen3_coder", ""},
	"vllm-teleflm":                             {"", ""},
	"vllm-toolace":                             {"pythonic", ""},
	"vllm-xlam_llama":                          {"xlam", ""},
	"vllm-xlam_qwen":                           {"xlam", ""},
}

// TestDetect chooses for every template of ../shared.
func TestDetect(t *testing.T) {
	dir := filepath.Join(testutil.Shared(t, "chat"), "templates")
	raw, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index []struct{ Name, File string }
	if err := json.Unmarshal(raw, &index); err != nil {
		t.Fatal(err)
	}
	if len(index) != len(detected) {
		t.Errorf("%d templates, %d are expected", len(index), len(detected))
	}
	for _, e := range index {
		template, err := os.ReadFile(filepath.Join(dir, e.File))
		if err != nil {
			t.Fatal(err)
		}
		tool, reasoning := Detect(string(template), e.Name)
		if got, want := [2]string{tool, reasoning}, detected[e.Name]; got != want {
			t.Errorf("%s: %q, want %q", e.Name, got, want)
		}
	}
}

// TestDetectRules chooses by parts of templates and by names, and only dialects that there are.
func TestDetectRules(t *testing.T) {
	for _, c := range []struct{ template, name, tool, reasoning string }{
		{"", "", "", ""},
		{"", "xLAM-2-8b-fc-r", "xlam", ""},
		{"", "ToolACE-2-Llama-3.1-8B", "pythonic", ""},
		{"", "granite-3.2-8b-instruct", "", "granite"},
		{"{{ '<tool_call>\n<function=' }}", "MiMo-7B-RL", "mimo", ""},
		{"<tool_call> <response> <think>", "ERNIE-4.5-21B-A3B-Thinking", "ernie45", "ernie45"},
		{kimiSection + "<think>", "Kimi-K2-Thinking", "kimi_k2", "kimi_k2"},
		{kimiSection, "Kimi-K2-Thinking", "kimi_k2", "kimi_k2"},
		{"<｜DSML｜ calls>", "DeepSeek-V4.1", "deepseek_v41", "deepseek_v32"},
		{"[TOOL_CALLS] [CALL_ID] [ARGS]", "", "mistral_callid", ""},
		{"<|python_start|>", "Llama-4-Scout", "llama4_pythonic", ""},
		{"<seed:tool_call> <seed:think>", "Seed-OSS-36B", "seed_oss", "seed_oss"},
		{"<tool_calls><tool_sep><arg_key>", "HY-3", "hy_v3", ""},
	} {
		if tool, reasoning := Detect(c.template, c.name); tool != c.tool || reasoning != c.reasoning {
			t.Errorf("%q, %s: %q, %q; want %q, %q", c.template, c.name, tool, reasoning, c.tool, c.reasoning)
		}
	}
	for _, r := range toolRules() {
		if _, ok := lookup(tools(), r.dialect, toolName); !ok && r.dialect != "" {
			t.Errorf("a rule chooses the dialect of calls %s", r.dialect)
		}
	}
	for _, r := range reasoningRules() {
		if _, ok := lookup(reasonings(), r.dialect, reasoningName); !ok {
			t.Errorf("a rule chooses the dialect of reasoning %s", r.dialect)
		}
		if _, ok := lookup(tools(), r.tool, toolName); !ok && r.tool != "" {
			t.Errorf("a rule asks for the dialect of calls %s", r.tool)
		}
	}
}

func TestPromptOpens(t *testing.T) {
	for _, c := range []struct {
		reasoning, prompt string
		want              bool
	}{
		{"qwen3", "<|im_start|>assistant\n<think>\n", true},
		{"qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n", false},
		{"qwen3", "<|im_start|>user\n<think><|im_end|>\n<|im_start|>assistant\n", false},
		{"apriel", "<|begin_assistant|>\nHere are my reasoning steps:\n", true},
		{"kimi_k3", "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>", true},
		{"kimi_k3", "<|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|>", false},
		{"harmony", "<|start|>assistant", false},
		{"harmony", "<|start|>assistant<|channel|>analysis<|message|>", true},
		{"minimax_m2_append_think", "]~b]ai\n<think>\n", true},
		{cohereName, "<|CHATBOT_TOKEN|><|START_THINKING|><|END_THINKING|>", false},
		{"", "<think>", false},
	} {
		if got := PromptOpens(c.reasoning, c.prompt); got != c.want {
			t.Errorf("%s, %q: %v", c.reasoning, c.prompt, got)
		}
	}
}
