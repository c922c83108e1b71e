package dialect

// toolAlias returns the dialect of calls that other programs, or makers of models, call so.
func toolAlias(name string) string {
	switch name {
	case "qwen2.5", "qwen3", "granite4", "smollm3", "bielik", "mimo-vl", "trinity", "reka":
		return "hermes"
	case "qwen3.5", "qwen3.6", "nemotron_v3", "step3p5", "nanbeige":
		return "qwen3_coder"
	case "mistral":
		return "mistral_json"
	case "llama4_json":
		return "llama3_json"
	case "llama3.2_pythonic", "toolace", "gemma3_pythonic", "watt":
		return "pythonic"
	case "deepseek_r1":
		return "deepseek_v3"
	case "poolside_v1":
		return "glm45"
	case "glm5", "laguna_s":
		return "glm47"
	case "apriel":
		return "hunyuan_a13b"
	case "gpt-oss", "openai":
		return "harmony"
	case "intern-s1":
		return "internlm2"
	case "firefunction_v2":
		return "phi4_mini"
	}
	return name
}

// reasoningAlias is the same for dialects of reasoning.
func reasoningAlias(name string) string {
	switch name {
	case "qwen3-thinking", "step3", "gigachat35":
		return "deepseek_r1"
	case "interns1", "holo2", "smollm3", "dots", "mimo", "hy_v3":
		return "qwen3"
	case "nemotron_v3":
		return "qwen3_5"
	case "deepseek_v4", "deepseek_v41":
		return "deepseek_v32"
	case "spark25", "ling3":
		return "glm47"
	case "gpt-oss", "openai":
		return "harmony"
	case "cohere_command4":
		return cohereName
	}
	return name
}
