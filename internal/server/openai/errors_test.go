package openai

import (
	"encoding/json"
	"strings"
	"testing"
)

// Every refusal is a 400 (or what is said) that names the field, before anything streams.
func TestRefusals(t *testing.T) {
	s := start(t)
	const tools = `"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]`
	user := func(more string) string {
		return `{"model":"storyteller","messages":[{"role":"user","content":"x"}],` + more + `}`
	}
	messages := func(m string) string { return `{"model":"storyteller","messages":` + m + `}` }
	prompt := func(more string) string { return `{"model":"storyteller","prompt":"x",` + more + `}` }
	input := func(more string) string { return `{"model":"storyteller","input":"x",` + more + `}` }
	for _, c := range []struct {
		path, body, param, message string
	}{
		{chatPath, `{"model": `, "", "no valid JSON"},
		{chatPath, `[1,2]`, "", "is a list, not an object"},
		{chatPath, ``, "", "is empty"},
		{chatPath, `{"messages":[{"role":"user","content":"x"}]}`, "model", "is missing"},
		{chatPath, `{"model":"storyteller"}`, "messages", "is missing"},
		{chatPath, messages(`[]`), "messages", "is empty"},
		{chatPath, messages(`"hello"`), "messages", "is a string, not a list"},
		{chatPath, messages(`[17]`), "messages[0]", "is a number"},
		{chatPath, messages(`[{"role":"user","content":17}]`), "messages[0].content", "is a number"},
		{chatPath, messages(`[{"content":"x"}]`), "messages[0].role", "is missing"},
		{chatPath, messages(`[{"role":"user"}]`), "messages[0].content", "is missing"},
		{chatPath, messages(`[{"role":"king","content":"x"}]`), "messages[0].role", "king"},
		{chatPath, messages(`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]`), "messages[0].content[0].type", "image_url"},
		{chatPath, messages(`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"a","arguments":"{oops"}}]}]`),
			"messages[1].tool_calls[0].function.arguments", "no valid JSON"},
		{chatPath, user(`"max_tokens":-1`), "max_tokens", "is -1"},
		{chatPath, user(`"max_tokens":0`), "max_tokens", "is 0"},
		{chatPath, user(`"max_completion_tokens":0`), "max_completion_tokens", "is 0"},
		{chatPath, user(`"max_tokens":"ten"`), "max_tokens", "is a string, not a number"},
		{chatPath, user(`"temperature":-0.1`), "temperature", "is -0.1"},
		{chatPath, user(`"temperature":"hot"`), "temperature", "is a string"},
		{chatPath, user(`"top_p":1.5`), "top_p", "is 1.5"},
		{chatPath, user(`"presence_penalty":3`), "presence_penalty", "is 3"},
		{chatPath, user(`"n":0`), "n", "is 0"},
		{chatPath, user(`"n":1000000`), "n", "is 1000000"},
		{chatPath, user(`"logit_bias":{"5":500}`), "logit_bias.5", "is 500"},
		{chatPath, user(`"logit_bias":{"cat":1}`), "logit_bias", "cat"},
		{chatPath, user(`"logit_bias":{"99999999":1}`), "logit_bias", "99999999"},
		{chatPath, user(`"allowed_token_ids":[]`), "allowed_token_ids", "is empty"},
		{chatPath, user(`"allowed_token_ids":[-1]`), "allowed_token_ids", "-1"},
		{chatPath, user(`"stop_token_ids":[99999999]`), "stop_token_ids", "99999999"},
		{chatPath, user(`"top_logprobs":3`), "top_logprobs", "needs logprobs"},
		{chatPath, user(`"logprobs":true,"top_logprobs":1000`), "top_logprobs", "is 1000"},
		{chatPath, user(`"response_format":{"type":"poem"}`), "response_format.type", "poem"},
		{chatPath, user(tools + `,"tool_choice":{"type":"function","function":{"name":"fly"}}`), "tool_choice", "fly"},
		{chatPath, user(`"tool_choice":"required"`), "tool_choice", "no tools"},
		{chatPath, user(tools + `,"tool_choice":"sometimes"`), "tool_choice", "sometimes"},
		{chatPath, user(`"tools":"hammer"`), "tools", "is a string"},
		{chatPath, user(`"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", "is missing"},
		{chatPath, user(`"stream":"yes"`), "stream", "is a string"},
		{chatPath, user(`"stream":true,"temperature":-3`), "temperature", "is -3"},
		{chatPath, user(`"use_beam_search":true,"stop":"x"`), "stop", "does not go with use_beam_search"},
		{chatPath, user(`"best_of":2`), "best_of", "best_of"},
		{chatPath, user(`"stop":[""]`), "stop", "empty"},
		{chatPath, user(`"stop":[` + strings.Repeat(`"x",`, 64) + `"x"]`), "stop", "has 65 texts; at most 64"},
		{chatPath, user(`"allowed_token_ids":[70],"response_format":{"type":"json_object"}`), "", "no token can be chosen"},
		{chatPath, user(`"allowed_token_ids":[70],"response_format":{"type":"json_object"},"stream":true`), "", "no token can be chosen"},
		{textPath, prompt(`"allowed_token_ids":[70],"guided_choice":["left"]`), "", "no token can be chosen"},
		{chatPath, user(`"chat_template_kwargs":[1]`), "chat_template_kwargs", "is a list"},
		{textPath, prompt(`"suffix":"end"`), "suffix", "not supported"},
		{textPath, prompt(`"best_of":2,"n":3`), "best_of", "is 2"},
		{textPath, prompt(`"best_of":2,"stream":true`), "best_of", "stream"},
		{textPath, prompt(`"logprobs":1000`), "logprobs", "is 1000"},
		{textPath, prompt(`"max_tokens":0`), "max_tokens", "is 0"},
		{textPath, `{"model":"storyteller"}`, "prompt", "is missing"},
		{textPath, `{"model":"storyteller","prompt":[]}`, "prompt", "is empty"},
		{textPath, `{"model":"storyteller","prompt":[1,"a"]}`, "prompt", "mixes"},
		{textPath, `{"model":"storyteller","prompt":["a",[1,99999999]]}`, "prompt[1]", "99999999"},
		{textPath, `{"model":"storyteller","prompt":""}`, "", "no tokens|empty"},
		{"/v1/embeddings", input(`"dimensions":100000`), "dimensions", "is 100000"},
		{"/v1/embeddings", input(`"encoding_format":"x"`), "encoding_format", "x"},
		{"/v1/responses", input(`"background":true`), "background", "not supported"},
		{"/v1/responses", input(`"max_output_tokens":0`), "max_output_tokens", "is 0"},
		{"/v1/responses", input(`"tools":[{"type":"web_search"}]`), "tools[0].type", "web_search"},
		{"/v1/responses", `{"model":"storyteller","input":[{"type":"picture"}]}`, "input[0].type", "picture"},
		{"/v1/responses", `{"model":"storyteller"}`, "input", "is missing"},
		{"/v1/detokenize", `{"tokens":[99999999]}`, "tokens", "99999999"},
		{"/v1/tokenize", `{}`, "prompt", "is missing"},
	} {
		status, _, answer := s.Do("POST", c.path, c.body)
		var e struct {
			Error struct{ Message, Type, Param, Code string }
		}
		if err := json.Unmarshal([]byte(answer), &e); err != nil {
			t.Errorf("%s %s: %v in %s", c.path, c.body, err, answer)
			continue
		}
		known := false
		for _, want := range strings.Split(c.message, "|") {
			known = known || strings.Contains(e.Error.Message, want)
		}
		if status != 400 || e.Error.Param != c.param || !known || e.Error.Type != "invalid_request_error" {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, answer)
		}
	}
}

func TestOtherErrors(t *testing.T) {
	s := start(t)
	long := strings.Repeat("word ", 2000)
	for _, c := range []struct {
		path, body string
		status     int
		code       string
	}{
		{chatPath, `{"model":"none","messages":[{"role":"user","content":"x"}]}`, 404, "model_not_found"},
		{textPath, `{"model":"none","prompt":"x"}`, 404, "model_not_found"},
		{"/v1/embeddings", `{"model":"none","input":"x"}`, 404, "model_not_found"},
		{chatPath, chat(long, ""), 400, "context_length_exceeded"},
		{chatPath, chat(long, `,"stream":true`), 400, "context_length_exceeded"},
		{textPath, `{"model":"storyteller","prompt":"` + long + `"}`, 400, "context_length_exceeded"},
		{"/v1/embeddings", `{"model":"storyteller","input":"` + long + `"}`, 400, "context_length_exceeded"},
		{"/v1/responses", `{"model":"storyteller","input":"` + long + `"}`, 400, "context_length_exceeded"},
		{"/v1/responses", `{"model":"storyteller","input":"x","previous_response_id":"none"}`, 404, "previous_response_not_found"},
	} {
		status, _, answer := s.Do("POST", c.path, c.body)
		if status != c.status || !strings.Contains(answer, `"code":"`+c.code+`"`) {
			t.Errorf("%s %.80s: %d %s", c.path, c.body, status, answer)
		}
	}
}
