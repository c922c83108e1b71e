package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/servertest"
)

// nextToken is the token of a text.
func nextToken(t *testing.T, s *servertest.Server, text string) int32 {
	t.Helper()
	var got struct{ Tokens []int32 }
	s.Post("/tokenize", 200, `{"prompt":`+quoted(text)+`,"add_special_tokens":false}`, &got)
	if len(got.Tokens) == 0 {
		t.Fatalf("%q has no tokens", text)
	}
	return got.Tokens[len(got.Tokens)-1]
}

// A call that the model begins by itself comes as it is written, too, if its tool is strict. In this dialect the name of
// a tool and a line break begin one: names are made of a letter that is likely, as the line break is.
func TestAutoCallStreams(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Mount: Mount, Server: server.Options{Dialects: spillway.Dialects{Tool: "functionary_v32"}}})
	var tools []string
	for n := range 8 {
		tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":"%s","strict":true,"parameters":{"type":"object",`+
			`"properties":{"text":{"type":"string","minLength":3,"maxLength":20}},"required":["text"],"additionalProperties":false}}}`, strings.Repeat("e", n+1)))
	}
	body := fmt.Sprintf(`{"model":"storyteller","temperature":1,"max_tokens":90,"logit_bias":{"%d":60,"%d":66},"messages":[{"role":"user","content":"Say something."}],"tools":[%s]`,
		nextToken(t, s, "\ne"), nextToken(t, s, "e\n"), strings.Join(tools, ","))
	called := 0
	for seed := range 12 {
		body := fmt.Sprintf(`%s,"seed":%d`, body, seed)
		var got struct {
			Choices []struct {
				Message struct {
					ToolCalls []callDelta `json:"tool_calls"`
				}
			}
		}
		s.Post(chatPath, 200, body+"}", &got)
		f, pieces := streamedCall(s, body)
		switch calls := got.Choices[0].Message.ToolCalls; {
		case len(calls) == 0 && f.Name == "":
		case len(calls) == 0 || calls[0].Function != f || strings.Trim(f.Name, "e") != "" || !strings.HasPrefix(f.Arguments, `{"text":"`) || !json.Valid([]byte(f.Arguments)) || pieces < 3:
			t.Errorf("seed %d: %+v in %d pieces as a stream, %+v whole", seed, f, pieces, calls)
		default:
			called++
		}
	}
	if called == 0 {
		t.Error("no answer was a call")
	}
}
