package anthropic

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/server/servertest"
)

const (
	tools = `"tools":[{"name":"add","input_schema":{"type":"object","properties":{"a":{"enum":[1,2]}},"required":["a"],"additionalProperties":false}},` +
		`{"name":"now","input_schema":{"type":"object","additionalProperties":false}}]`
	hello = `{"model":"storyteller","temperature":0,"max_tokens":90,"messages":[{"role":"user","content":"Add 2 and 3."}],`
)

// The choice of a tool is kept, of a model that knows no calls, too.
func TestToolChoices(t *testing.T) {
	s := start(t)
	for _, c := range []struct{ choice, looks string }{
		{`{"type":"tool","name":"add"}`, `^add \{"a":[12]\}$`}, {`{"type":"tool","name":"now"}`, `^now \{\}$`},
		{`{"type":"any","disable_parallel_tool_use":true}`, `^(add \{"a":[12]\}|now \{\})$`},
	} {
		var m struct {
			Content []struct {
				Type, Name string
				Input      json.RawMessage
			}
			Reason string `json:"stop_reason"`
		}
		s.Post("/v1/messages", 200, hello+tools+`,"tool_choice":`+c.choice+`}`, &m)
		if len(m.Content) != 1 || m.Content[0].Type != "tool_use" || m.Reason != "tool_use" ||
			!regexp.MustCompile(c.looks).MatchString(m.Content[0].Name+" "+string(m.Content[0].Input)) {
			t.Errorf("%s: %+v", c.choice, m)
		}
	}
}

func TestForms(t *testing.T) {
	s := start(t)
	const format = `{"type":"json_schema","schema":{"type":"object","properties":{"a":{"enum":["x","y"]}},"required":["a"],"additionalProperties":false}}`
	for _, field := range []string{`"output_format":` + format, `"output_config":{"format":` + format + `}`} {
		var m struct{ Content []struct{ Text string } }
		s.Post("/v1/messages", 200, hello+field+`}`, &m)
		if len(m.Content) != 1 || m.Content[0].Text != `{"a":"x"}` && m.Content[0].Text != `{"a":"y"}` {
			t.Errorf("%s: %+v", field, m)
		}
	}
	for field, want := range map[string]string{
		`"output_format":{"type":"poem"}`:                                                              "output_format.type",
		`"output_format":{"type":"json_schema"}`:                                                       "output_format.schema",
		`"output_format":{"type":"json_schema","schema":{"type":"strnig"}}`:                            `keyword "type" at #`,
		strings.Replace(tools, `"enum":[1,2]`, `"type":"strnig"`, 1) + `,"tool_choice":{"type":"any"}`: `the schema of the tool "add"`,
	} {
		var e errorBody
		s.Post("/v1/messages", 400, hello+field+`}`, &e)
		if e.Error.Type != "invalid_request_error" || !strings.Contains(e.Error.Message, want) {
			t.Errorf("%s: %+v, want %q", field, e, want)
		}
	}
}

// streamedCall is the call of a streamed message as its deltas give it, and how many had arguments.
func streamedCall(t *testing.T, s *servertest.Server, body string) (name, input, reason string, pieces int) {
	t.Helper()
	for _, e := range s.Events("/v1/messages", body+`,"stream":true}`) {
		var v struct {
			Block struct{ Name string } `json:"content_block"`
			Delta struct {
				Type, Text string
				JSON       string `json:"partial_json"`
				Reason     string `json:"stop_reason"`
			}
		}
		if err := json.Unmarshal([]byte(e.Data), &v); err != nil {
			t.Fatal(err)
		}
		if name += v.Block.Name; v.Delta.Type == "input_json_delta" {
			if pieces++; name == "" {
				t.Error("arguments come before the name")
			}
		}
		input += v.Delta.JSON
		reason += v.Delta.Reason
	}
	return name, input, reason, pieces
}

// Arguments come as they are written.
func TestCallsStream(t *testing.T) {
	s := start(t)
	const say = `"tools":[{"name":"say","input_schema":{"type":"object","properties":{"text":{"type":"string","minLength":3,"maxLength":30}},"required":["text"],"additionalProperties":false}}]`
	for _, choice := range []string{`{"type":"any"}`, `{"type":"tool","name":"say"}`} {
		body := hello + say + `,"tool_choice":` + choice
		var m struct {
			Content []struct {
				Name  string
				Input json.RawMessage
			}
		}
		s.Post("/v1/messages", 200, body+"}", &m)
		name, input, reason, pieces := streamedCall(t, s, body)
		if len(m.Content) != 1 || name != "say" || m.Content[0].Name != name || string(m.Content[0].Input) != input || reason != "tool_use" || pieces < 3 {
			t.Errorf("%s: %s %s in %d pieces, %s, as a stream, %+v whole", choice, name, input, pieces, reason, m)
		}
	}
	cut := strings.Replace(hello+say, `"minLength":3,"maxLength":30`, `"minLength":900`, 1) + `,"tool_choice":{"type":"any"}`
	if name, input, reason, pieces := streamedCall(t, s, cut); name != "say" || !strings.HasPrefix(input, `{"text":"`) || json.Valid([]byte(input)) || reason != "max_tokens" || pieces < 3 {
		t.Errorf("%s %s in %d pieces, %s", name, input, pieces, reason)
	}
}
