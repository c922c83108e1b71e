package anthropic

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
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
