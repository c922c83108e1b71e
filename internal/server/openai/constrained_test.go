package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/server/servertest"
)

const (
	petSchema = `{"type":"object","properties":{"name":{"type":"string","maxLength":9},"kind":{"enum":["cat","dog"]}},"required":["name","kind"],"additionalProperties":false}`
	petLooks  = `^\{"name":"([^"\\]|\\.)*","kind":"(cat|dog)"\}$`
	addTools  = `"tools":[{"type":"function","function":{"name":"add","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]}},` +
		`"required":["a","b"],"additionalProperties":false}}},{"type":"function","function":{"name":"now","parameters":{"type":"object","additionalProperties":false}}}]`
)

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// Every field that asks for a form has it, in both APIs of completions.
func TestForms(t *testing.T) {
	s := start(t)
	tag := `{"type":"structural_tag","format":{"type":"tag","begin":"<n>","content":{"type":"regex","pattern":"[0-9]{2}"},"end":"</n>"}}`
	gbnf, lark := `root ::= "a" [bc]{2}`, `start: "a" /[bc]{2}/`
	for _, c := range []struct{ fields, looks string }{
		{`"response_format":{"type":"json_schema","json_schema":{"name":"pet","strict":true,"schema":` + petSchema + `}}`, petLooks},
		{`"response_format":{"type":"json_object","schema":` + petSchema + `}`, petLooks},
		{`"response_format":{"type":"structural_tag","format":{"type":"const_string","value":"So be it"}}`, `^So be it$`},
		{`"response_format":{"type":"text"},"guided_json":` + petSchema, petLooks},
		{`"guided_json":` + quoted(petSchema), petLooks},
		{`"guided_regex":"[a-c]{4}"`, `^[a-c]{4}$`},
		{`"guided_choice":["left side","right side"]`, `^(left|right) side$`},
		{`"guided_grammar":` + quoted(gbnf), `^a[bc]{2}$`},
		{`"guided_grammar":` + quoted(lark), `^a[bc]{2}$`},
		{`"grammar":` + quoted(gbnf), `^a[bc]{2}$`},
		{`"json_schema":` + petSchema, petLooks},
		{`"structural_tag":` + tag, `^<n>\d\d</n>$`},
		{`"structural_tag":` + quoted(tag), `^<n>\d\d</n>$`},
		{`"structured_outputs":{"json":` + petSchema + `}`, petLooks},
		{`"structured_outputs":{"regex":"[a-c]{4}"}`, `^[a-c]{4}$`},
		{`"structured_outputs":{"choice":["left side","right side"]}`, `^(left|right) side$`},
		{`"structured_outputs":{"grammar":` + quoted(gbnf) + `}`, `^a[bc]{2}$`},
		{`"structured_outputs":{"structural_tag":` + tag + `}`, `^<n>\d\d</n>$`},
	} {
		var one, other text
		s.Post(chatPath, 200, fmt.Sprintf(`{"model":"storyteller","temperature":1,"seed":3,"n":2,"max_tokens":80,"messages":[{"role":"user","content":"Hi"}],%s}`, c.fields), &one)
		s.Post(textPath, 200, fmt.Sprintf(`{"model":"storyteller","temperature":1,"seed":3,"max_tokens":80,"prompt":["Hi","Ho"],%s}`, c.fields), &other)
		for _, x := range append(one.Choices, other.Choices...) {
			if got := x.Message.Content + x.Text; !regexp.MustCompile(c.looks).MatchString(got) || x.FinishReason != "stop" {
				t.Errorf("%s: %q, %s", c.fields, got, x.FinishReason)
			}
		}
	}
	var cut text
	s.Post(chatPath, 200, chat("Hi", `,"guided_regex":"[a-z]{200}"`), &cut)
	if x := cut.Choices[0]; x.FinishReason != "length" || !regexp.MustCompile(`^[a-z]+$`).MatchString(x.Message.Content) {
		t.Errorf("%+v", x)
	}
}

func TestFormsRefused(t *testing.T) {
	s := start(t)
	for _, c := range []struct{ fields, param, message string }{
		{`"response_format":{"type":"json_schema"}`, "response_format.schema", "is missing"},
		{`"response_format":{"type":"json_schema","json_schema":{"schema":{"properties":{"a":{"pattern":"(?<=x)y"}}}}}`, "response_format", `keyword "pattern" at #/properties/a`},
		{`"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"strnig"}}}`, "response_format", `keyword "type" at #`},
		{`"response_format":"json"`, "response_format", "is a string"},
		{`"guided_regex":"("`, "guided_regex", "without )"},
		{`"guided_choice":[]`, "guided_choice", "is empty"},
		{`"guided_json":17`, "guided_json", "is a number"},
		{`"grammar":"root ::= x"`, "grammar", "x"},
		{`"structural_tag":{"type":"poem"}`, "structural_tag", "poem"},
		{`"guided_regex":"a","guided_choice":["a"]`, "guided_choice", "guided_regex"},
		{`"structured_outputs":{"regex":"a","json_object":true}`, "structured_outputs.json_object", "structured_outputs.regex"},
		{`"use_beam_search":true,"guided_regex":"a"`, "guided_regex", "does not go with use_beam_search"},
		{`"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"pattern":"(?<=x)y"}}}}}],"tool_choice":"required"`,
			"tools", `the schema of the tool "f": keyword "pattern" at #/properties/a`},
	} {
		_, _, answer := s.Do("POST", chatPath, chat("Hi", ","+c.fields))
		var e struct {
			Error struct{ Message, Type, Param string }
		}
		if err := json.Unmarshal([]byte(answer), &e); err != nil || e.Error.Param != c.param || !strings.Contains(e.Error.Message, c.message) || e.Error.Type != "invalid_request_error" {
			t.Errorf("%s: %s", c.fields, answer)
		}
	}
}

// Choices of tools are kept, and arguments fit their schemas, also of a model that knows no calls.
func TestToolChoices(t *testing.T) {
	s := start(t)
	looks := map[string]*regexp.Regexp{"add": regexp.MustCompile(`^\{"a":-?\d+,"b":"[xy]"\}$`), "now": regexp.MustCompile(`^\{\}$`)}
	for _, c := range []struct{ choice, name string }{
		{`"required"`, ""}, {`{"type":"function","function":{"name":"add"}}`, "add"}, {`{"type":"function","function":{"name":"now"}}`, "now"},
	} {
		body := fmt.Sprintf(`{"model":"storyteller","temperature":0,"max_tokens":90,"messages":[{"role":"user","content":"Add 2 and 3."}],%s,"tool_choice":%s`, addTools, c.choice)
		var got struct {
			Choices []struct {
				Message struct {
					ToolCalls []callDelta `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
		}
		s.Post(chatPath, 200, body+"}", &got)
		x := got.Choices[0]
		if len(x.Message.ToolCalls) != 1 || x.FinishReason != "tool_calls" {
			t.Errorf("%s: %+v", c.choice, x)
			continue
		}
		f := x.Message.ToolCalls[0].Function
		if c.name != "" && f.Name != c.name || looks[f.Name] == nil || !looks[f.Name].MatchString(f.Arguments) {
			t.Errorf("%s: %+v", c.choice, f)
		}
		streamed, pieces := streamedCall(s, body)
		if streamed != f {
			t.Errorf("%s: %+v as a stream, %+v whole", c.choice, streamed, f)
		}
		if f.Name == "add" && pieces < 3 {
			t.Errorf("%s: the arguments %s come in %d pieces", c.choice, f.Arguments, pieces)
		}
	}
}

// streamedCall is the call of a streamed answer put together, and in how many pieces its arguments came. The first
// piece has the name and no arguments.
func streamedCall(s *servertest.Server, body string) (f functionDelta, pieces int) {
	for _, e := range s.Events(chatPath, body+`,"stream":true}`) {
		var chunk chunk
		if json.Unmarshal([]byte(e.Data), &chunk) != nil || len(chunk.Choices) == 0 {
			continue
		}
		for _, d := range chunk.Choices[0].Delta.ToolCalls {
			if f.Name == "" && d.Function.Arguments != "" {
				pieces = -1000
			}
			if f.Name += d.Function.Name; d.Function.Arguments != "" {
				pieces++
			}
			f.Arguments += d.Function.Arguments
		}
	}
	return f, pieces
}

// A call that max_tokens cuts off ends in the midst of its arguments, the same way streamed and whole.
func TestCutCall(t *testing.T) {
	s := start(t)
	const args = `{"text":"`
	body := `{"model":"storyteller","temperature":0,"max_tokens":60,"messages":[{"role":"user","content":"Say something."}],"tool_choice":"required",` +
		`"tools":[{"type":"function","function":{"name":"say","parameters":{"type":"object","properties":{"text":{"type":"string","minLength":900}},"required":["text"],"additionalProperties":false}}}]`
	var got struct {
		Choices []struct {
			Message struct {
				Content   *string
				ToolCalls []callDelta `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	s.Post(chatPath, 200, body+"}", &got)
	x := got.Choices[0]
	if x.FinishReason != "length" || x.Message.Content != nil || len(x.Message.ToolCalls) != 1 || !strings.HasPrefix(x.Message.ToolCalls[0].Function.Arguments, args) {
		t.Fatalf("%+v", x)
	}
	f, pieces := streamedCall(s, body)
	if f != x.Message.ToolCalls[0].Function || pieces < 3 {
		t.Errorf("%+v in %d pieces as a stream, %+v whole", f, pieces, x.Message.ToolCalls[0].Function)
	}
}

func TestResponsesForm(t *testing.T) {
	s := start(t)
	var got struct {
		Output []struct {
			Type, Name, Arguments string
			Content               []struct{ Text string }
		}
		Text struct{ Format struct{ Type string } }
	}
	s.Post("/v1/responses", 200, `{"model":"storyteller","temperature":0,"max_output_tokens":80,"input":"Hi","text":{"format":{"type":"json_schema","name":"pet","schema":`+petSchema+`}}}`, &got)
	if len(got.Output) != 1 || len(got.Output[0].Content) != 1 || !regexp.MustCompile(petLooks).MatchString(got.Output[0].Content[0].Text) || got.Text.Format.Type != "json_schema" {
		t.Errorf("%+v", got)
	}
	got.Output = nil
	s.Post("/v1/responses", 200, `{"model":"storyteller","temperature":0,"max_output_tokens":80,"input":"Hi","tool_choice":"required","tools":[{"type":"function","name":"f","strict":true,`+
		`"parameters":{"type":"object","properties":{"x":{"enum":[1,2]}},"required":["x"],"additionalProperties":false}}]}`, &got)
	if len(got.Output) != 1 || got.Output[0].Type != "function_call" || !regexp.MustCompile(`^\{"x":[12]\}$`).MatchString(got.Output[0].Arguments) {
		t.Errorf("%+v", got)
	}
}

// calledResponse is a response with a call.
type calledResponse struct {
	ID, Status string
	Output     []struct {
		Type, Name, Arguments, Status string
	}
}

// Arguments of a response's call come in pieces; the answer, which is stored, has them as a whole.
func TestResponsesCallStreams(t *testing.T) {
	s := start(t)
	for choice, want := range map[string]string{`"required"`: "say", `{"type":"function","name":"now"}`: "now"} {
		body := `{"model":"storyteller","temperature":0,"max_output_tokens":90,"input":"Say something.","tool_choice":` + choice + `,"tools":[{"type":"function","name":"say","strict":true,` +
			`"parameters":{"type":"object","properties":{"text":{"type":"string","minLength":3,"maxLength":30}},"required":["text"],"additionalProperties":false}},` +
			`{"type":"function","name":"now","parameters":{"type":"object","additionalProperties":false}}]`
		if want == "say" {
			body = strings.Replace(body, `,{"type":"function","name":"now","parameters":{"type":"object","additionalProperties":false}}`, "", 1)
		}
		var whole calledResponse
		s.Post("/v1/responses", 200, body+"}", &whole)
		name, done, deltas := responseDeltas(t, s, body)
		if len(whole.Output) != 1 || whole.Output[0].Name != want || name != want || strings.Join(deltas, "") != whole.Output[0].Arguments || done != whole.Output[0].Arguments {
			t.Errorf("%s: %s, %q and %s as a stream, %+v whole", choice, name, deltas, done, whole)
		}
		if want == "say" && len(deltas) < 3 {
			t.Errorf("%s: %q", choice, deltas)
		}
	}
}

// responseDeltas are the name and the arguments of a streamed response's call, whole and in pieces.
func responseDeltas(t *testing.T, s *servertest.Server, body string) (name, done string, deltas []string) {
	t.Helper()
	for _, e := range s.Events("/v1/responses", body+`,"stream":true}`) {
		var v struct {
			Delta, Arguments string
			Item             struct{ Name string }
		}
		if err := json.Unmarshal([]byte(e.Data), &v); err != nil {
			t.Fatal(err)
		}
		switch e.Name {
		case "response.output_item.added":
			if name = v.Item.Name; len(deltas) > 0 {
				t.Error("arguments come before the name")
			}
		case "response.function_call_arguments.delta":
			deltas = append(deltas, v.Delta)
		case "response.function_call_arguments.done":
			done = v.Arguments
		}
	}
	return name, done, deltas
}

// A call that is cut off is incomplete, and a conversation goes on without it.
func TestResponsesCutCall(t *testing.T) {
	s := start(t)
	body := `{"model":"storyteller","temperature":0,"max_output_tokens":60,"input":"Say something.","tool_choice":"required","tools":[{"type":"function","name":"say",` +
		`"parameters":{"type":"object","properties":{"text":{"type":"string","minLength":900}},"required":["text"],"additionalProperties":false}}]}`
	var cut, next calledResponse
	s.Post("/v1/responses", 200, body, &cut)
	if cut.Status != "incomplete" || len(cut.Output) != 1 || cut.Output[0].Status != "incomplete" || !strings.HasPrefix(cut.Output[0].Arguments, `{"text":"`) {
		t.Fatalf("%+v", cut)
	}
	s.Post("/v1/responses", 200, `{"model":"storyteller","input":"And?","max_output_tokens":4,"previous_response_id":"`+cut.ID+`"}`, &next)
	if len(next.Output) != 1 || next.Output[0].Type != "message" {
		t.Errorf("%+v", next)
	}
}
