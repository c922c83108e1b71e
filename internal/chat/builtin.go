package chat

import (
	"slices"
	"strings"
)

// Formats of conversations that many models share, for models that come without a template of their own,
// and by name.

// A builtin is one of them.
type builtin struct {
	source string
	token  string // a vocabulary that has it suggests the format; "": none does
	bare   bool   // without BOS
}

// text(m) is a message's content as text, whether it is a string, a list of parts, or missing.
const textMacro = `{% macro text(m) %}{% if m.content is string %}{{ m.content }}{% elif m.content %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endmacro %}`

// system is the text of the system's message, if it is the first one, and rest the other ones.
const system = textMacro + `{% set system = '' %}{% set rest = messages %}` +
	`{% if messages and messages[0]['role'] == 'system' %}{% set system = text(messages[0]) %}{% set rest = messages[1:] %}{% endif %}`

// alike is for formats in which the turns of all roles look alike.
func alike(begin, end, answer string) string {
	return textMacro + "{% for m in messages %}{{ " + begin + " + text(m) + " + end + " }}{% endfor %}{% if add_generation_prompt %}{{ " + answer + " }}{% endif %}"
}

// roles is for formats with one text before a user's turn and another one before an assistant's; first is
// printed before the first turn.
func roles(first, user, userEnd, assistant, assistantEnd, answer string) string {
	return system + "{{ " + first + " }}{% for m in rest %}{% if m['role'] == 'assistant' %}{{ " + assistant + " + text(m) + " + assistantEnd + " }}" +
		"{% else %}{{ " + user + " + text(m) + " + userEnd + " }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ " + answer + " }}{% endif %}"
}

// systemFirst is the system's message with a blank line after it, or nothing.
const systemFirst = `(system + '\n\n' if system else '')`

// plainText is for models that know no conversations: a single message is continued as it stands.
const plainText = textMacro + `{% if messages | length == 1 %}{{ text(messages[0]) }}{% else %}` +
	`{% for m in messages %}{% if m['role'] != 'system' %}{{ m['role'] | capitalize + ': ' }}{% endif %}{{ text(m) + '\n\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}{% endif %}`

// plainName is the format for models that suggest none.
const plainName = "plain"

// builtinOf returns the format of a name. Nothing is made of it until it is asked for.
func builtinOf(name string) (builtin, bool) {
	switch name {
	case "chatml":
		return builtin{alike(`'<|im_start|>' + m['role'] + '\n'`, `'<|im_end|>\n'`, `'<|im_start|>assistant\n'`), "<|im_start|>", false}, true
	case "llama3":
		return builtin{"{{ bos_token }}" + alike(`'<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n'`, `'<|eot_id|>'`,
			`'<|start_header_id|>assistant<|end_header_id|>\n\n'`), "<|start_header_id|>", false}, true
	case "gemma":
		return builtin{roles("bos_token", `'<start_of_turn>user\n' + (`+systemFirst+` if loop.first else '')`, `'<end_of_turn>\n'`,
			`'<start_of_turn>model\n'`, `'<end_of_turn>\n'`, `'<start_of_turn>model\n'`), "<start_of_turn>", false}, true
	case "phi3":
		return builtin{alike(`'<|' + m['role'] + '|>\n'`, `'<|end|>\n'`, `'<|assistant|>\n'`), "<|end|>", false}, true
	case "zephyr":
		return builtin{alike(`'<|' + m['role'] + '|>\n'`, `eos_token + '\n'`, `'<|assistant|>\n'`), "<|assistant|>", false}, true
	case "deepseek":
		return builtin{roles("bos_token + system", `'<｜User｜>'`, `''`, `'<｜Assistant｜>'`, "eos_token", `'<｜Assistant｜>'`), "<｜User｜>", false}, true
	case "mistral":
		return builtin{roles("bos_token", `'[INST] ' + (`+systemFirst+` if loop.first else '')`, `' [/INST]'`, `' '`, "eos_token", "''"), "[INST]", false}, true
	case "llama2":
		return builtin{roles("''", `bos_token + '[INST] ' + ('<<SYS>>\n' + system + '\n<</SYS>>\n\n' if loop.first and system else '')`, `' [/INST]'`,
			`' '`, "' ' + eos_token", "''"), "", false}, true
	case "vicuna":
		return builtin{roles(systemFirst, `'USER: '`, `'\n'`, `'ASSISTANT: '`, `eos_token + '\n'`, "'ASSISTANT:'"), "", true}, true
	case "alpaca":
		return builtin{roles(systemFirst, `'### Instruction:\n'`, `'\n\n'`, `'### Response:\n'`, `eos_token + '\n\n'`, `'### Response:\n'`), "", true}, true
	case plainName:
		return builtin{plainText, "", true}, true
	}
	return builtin{}, false
}

// BuiltinNames are the names of the formats that can be chosen for any model.
func BuiltinNames() []string {
	return []string{"chatml", "llama3", "gemma", "phi3", "zephyr", "deepseek", "mistral", "llama2", "vicuna", "alpaca", plainName}
}

// Builtin returns the format of a name, or nil.
func Builtin(name string) *Template {
	b, ok := builtinOf(strings.ToLower(name))
	if !ok {
		return nil
	}
	t := newTemplate(strings.ToLower(name), b.source)
	t.Bare = b.bare
	return t
}

// Guess returns the format that a vocabulary suggests, else plain; has says whether a token is in it.
func Guess(has func(token string) bool) *Template {
	names := BuiltinNames()
	i := slices.IndexFunc(names, func(name string) bool {
		b, _ := builtinOf(name)
		return b.token != "" && has(b.token)
	})
	if i < 0 {
		return Builtin(plainName)
	}
	return Builtin(names[i])
}
