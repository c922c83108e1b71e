package calls

// marks are the texts of forms that vocabularies may have as one token. Texts that a vocabulary may have by chance,
// such as </function>, are not among them.
var marks = []string{
	"<tool_call>", "</tool_call>", "<|tool_call|>", "<tool_calls>", "</tool_calls>", "<function_call>", "<function_calls>", "</function_calls>",
	"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[THINK]", "[/THINK]", "<|python_tag|>", "<|python_start|>", "<|python_end|>",
	"<|tool_call_start|>", "<|tool_call_end|>", "<TOOLCALL>", "</TOOLCALL>", "<seed:tool_call>", "</seed:tool_call>",
	"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "｜DSML｜",
	"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<tool_sep>", "<iquest_tool_call>", "</iquest_tool_call>",
	"<arg_key:opensource>", "</arg_key:opensource>", "<arg_value:opensource>", "</arg_value:opensource>", "<tool_sep:opensource>",
	"<tool_call:opensource>", "</tool_call:opensource>", "<tool_calls:opensource>", "</tool_calls:opensource>",
	"<minimax:tool_call>", "</minimax:tool_call>", m3, "<dots_function_call>", "</dots_function_call>",
	"<longcat_tool_call>", "</longcat_tool_call>", "<longcat_think>", "</longcat_think>",
	"<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_calls_section_end|>",
	"<|open|>", "<|close|>", "<|sep|>", "<｜tool_calls_begin｜>", "<｜tool_call_begin｜>", "<｜tool_sep｜>", "<｜tool_call_end｜>", "<｜tool_calls_end｜>",
	"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>", "<|eom|>", "<|eot|>",
	"<|message_model|>", "<|content_thinking|>", "<|content_text|>", "<|content_invoke_tool_json|>", "<|end_message|>",
	"<|action_start|>", "<|action_end|>", "<|plugin|>", "<|tools_prefix|>", "<|tools_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>",
	"<|START_ACTION|>", "<|END_ACTION|>", "<|START_THINKING|>", "<|END_THINKING|>",
	"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>",
	"<start_function_call>", "<end_function_call>", "<escape>", "<|tool_call>", "<tool_call|>", `<|"|>`, "<|channel>", "<channel|>",
	"<|message_sep|>", "<|role_sep|>", "<|function_call|>",
	"<think>", "</think>", "<think:opensource>", "</think:opensource>", "<seed:think>", "</seed:think>", "<mm:think>", "</mm:think>", "◁think▷", "◁/think▷",
	"<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>", "<|plamo:begin_tool_requests:plamo|>", "<|plamo:end_tool_requests:plamo|>",
	"<|plamo:begin_tool_request:plamo|>", "<|plamo:end_tool_request:plamo|>", "<|plamo:begin_tool_name:plamo|>", "<|plamo:end_tool_name:plamo|>",
	"<|plamo:begin_tool_arguments:plamo|>", "<|plamo:end_tool_arguments:plamo|>", "<|plamo:constrain|>", "<|plamo:msg|>",
}
