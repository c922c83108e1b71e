package openai

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/servertest"
)

// called are the events of an answer that thinks, speaks and calls two tools.
var called = []spillway.Event{
	{Kind: spillway.EventReasoning, Text: "Hm"}, {Kind: spillway.EventReasoning, Text: "."}, {Kind: spillway.EventContent, Text: "Let me see."},
	{Kind: spillway.EventCallBegin, Name: "add", ID: "own"}, {Kind: spillway.EventCallArguments, Text: `{"a":`}, {Kind: spillway.EventCallArguments, Text: `1}`},
	{Kind: spillway.EventCallEnd}, {Kind: spillway.EventCallBegin, Call: 1, Name: "sub"}, {Kind: spillway.EventCallArguments, Call: 1, Text: `{}`}, {Kind: spillway.EventCallEnd, Call: 1},
}

// fake is a server with a path that plays events instead of a model's.
func fake(t *testing.T, h server.Handler) *servertest.Server {
	return servertest.Start(t, servertest.Options{Mount: func(s *server.Server) error {
		s.Handle("POST /v1/fake", family, h)
		return nil
	}})
}

func fakeCompletion(x *server.Exchange) completion {
	return completion{x: x, h: held{&pool.Held{Name: "m"}}, r: spillway.Request{Sampling: &spillway.Sampling{}}, n: 1, id: "id", created: 1}
}

func TestChatStreamOfCalls(t *testing.T) {
	for _, one := range []bool{false, true} {
		s := fake(t, func(x *server.Exchange) error {
			out := x.Events()
			j := &chatJob{fakeCompletion(x), &chatRequest{}, &toolSet{one: one}}
			c := chatStream{j: j, out: out}
			for _, e := range called {
				c.event(e)
			}
			c.finish(&spillway.Answer{FinishReason: spillway.FinishStop})
			return out.Data("[DONE]")
		})
		var got []string
		for _, e := range s.Events("/v1/fake", "{}") {
			_, rest, _ := strings.Cut(e.Data, `"delta":`)
			got = append(got, strings.TrimSuffix(rest, "}]}"))
		}
		want := []string{
			`{"role":"assistant","content":""},"logprobs":null,"finish_reason":null`,
			`{"reasoning_content":"Hm"},"logprobs":null,"finish_reason":null`,
			`{"reasoning_content":"."},"logprobs":null,"finish_reason":null`,
			`{"content":"Let me see."},"logprobs":null,"finish_reason":null`,
			`{"tool_calls":[{"index":0,"id":"own","type":"function","function":{"name":"add","arguments":""}}]},"logprobs":null,"finish_reason":null`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]},"logprobs":null,"finish_reason":null`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"logprobs":null,"finish_reason":null`,
			`{"tool_calls":[{"index":1,"id":"call_","type":"function","function":{"name":"sub","arguments":""}}]},"logprobs":null,"finish_reason":null`,
			`{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"logprobs":null,"finish_reason":null`,
			`{},"logprobs":null,"finish_reason":"tool_calls"`, "",
		}
		if one {
			want = append(want[:7:7], want[9:]...)
		}
		for i := range got {
			if at := strings.Index(got[i], `"call_`); at >= 0 {
				end := at + 1 + strings.IndexByte(got[i][at+1:], '"')
				got[i] = got[i][:at+len(`"call_`)] + got[i][end:]
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("one: %v: %s", one, d)
		}
	}
}

func TestChatChoiceOfCalls(t *testing.T) {
	a := &spillway.Answer{
		Reasoning: "Hm.", FinishReason: spillway.FinishStop, StopSequence: "\n",
		ToolCalls: []spillway.ToolCall{{ID: "own", Name: "add", Arguments: `{"a":1}`}, {Name: "sub", Arguments: `{}`}},
	}
	j := &chatJob{fakeCompletion(nil), &chatRequest{}, &toolSet{}}
	c := j.choice(0, a)
	if c.FinishReason != "tool_calls" || c.Message.Content != nil || c.Message.Reasoning != "Hm." || c.StopReason != "\n" ||
		len(c.Message.ToolCalls) != 2 || c.Message.ToolCalls[0].ID != "own" || !strings.HasPrefix(c.Message.ToolCalls[1].ID, "call_") {
		t.Errorf("%+v", c)
	}
	j.tools.one = true
	if c := j.choice(0, a); len(c.Message.ToolCalls) != 1 {
		t.Errorf("%+v", c)
	}
	a.FinishReason = spillway.FinishLength
	if c := j.choice(0, a); c.FinishReason != "length" {
		t.Errorf("%+v", c)
	}
}

// The events of a response, as type, index of the item, and what is particular to them.
func TestResponseEvents(t *testing.T) {
	s := fake(t, func(x *server.Exchange) error {
		out := x.Events()
		c := fakeCompletion(x)
		j := &responseJob{x: x, h: c.h, r: c.r, body: &responseBody{}, tools: &toolSet{}}
		j.reply = newReply(j)
		j.reply.emit = func(e *responseEvent) { _ = out.Event(e.Type, e) }
		for _, e := range called {
			j.reply.event(e)
		}
		final := j.reply.finish(&spillway.Answer{FinishReason: spillway.FinishStop}, usage{})
		if len(final.Output) != 4 || *final.Output[2].Arguments != `{"a":1}` || final.Output[2].CallID != "own" {
			t.Errorf("%+v", final.Output)
		}
		return nil
	})
	want := []string{
		"response.created", "response.in_progress",
		"response.output_item.added 0 reasoning", "response.reasoning_text.delta 0 Hm", "response.reasoning_text.delta 0 .", "response.reasoning_text.done 0 Hm.", "response.output_item.done 0 reasoning",
		"response.output_item.added 1 message", "response.content_part.added 1", "response.output_text.delta 1 Let me see.", "response.output_text.done 1 Let me see.",
		"response.content_part.done 1", "response.output_item.done 1 message",
		"response.output_item.added 2 function_call", "response.function_call_arguments.delta 2 {\"a\":", "response.function_call_arguments.delta 2 1}",
		"response.function_call_arguments.done 2 {\"a\":1}", "response.output_item.done 2 function_call",
		"response.output_item.added 3 function_call", "response.function_call_arguments.delta 3 {}", "response.function_call_arguments.done 3 {}", "response.output_item.done 3 function_call",
		"response.completed",
	}
	var got []string
	for i, e := range s.Events("/v1/fake", "{}") {
		var v struct {
			Type                   string
			Sequence               int  `json:"sequence_number"`
			Index                  *int `json:"output_index"`
			Item                   struct{ Type string }
			Delta, Text, Arguments string
		}
		if err := json.Unmarshal([]byte(e.Data), &v); err != nil {
			t.Fatal(err)
		}
		if v.Type != e.Name || v.Sequence != i {
			t.Errorf("event %d is %s, %s %d", i, e.Name, v.Type, v.Sequence)
		}
		line := v.Type
		if v.Index != nil {
			line += " " + string(rune('0'+*v.Index))
		}
		if more := v.Item.Type + v.Delta + v.Text + v.Arguments; more != "" {
			line += " " + more
		}
		got = append(got, line)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A conversation goes on from what is stored.
func TestStoredResponses(t *testing.T) {
	s := start(t)
	type response struct {
		ID, Status string
		Output     []struct {
			Type    string
			Content []struct{ Text string }
		}
		Usage struct {
			Input int `json:"input_tokens"`
		}
	}
	var first, second, whole, read response
	s.Post("/v1/responses", 200, `{"model":"storyteller","input":"Tell me a story.","temperature":0,"max_output_tokens":8}`, &first)
	answer, _ := json.Marshal(first.Output[0].Content[0].Text)
	s.Post("/v1/responses", 200, `{"model":"storyteller","input":"And then?","temperature":0,"max_output_tokens":8,"previous_response_id":"`+first.ID+`"}`, &second)
	s.Post("/v1/responses", 200, `{"model":"storyteller","store":false,"temperature":0,"max_output_tokens":8,"input":[{"role":"user","content":"Tell me a story."},
		{"role":"assistant","content":`+string(answer)+`},{"role":"user","content":[{"type":"input_text","text":"And then?"}]}]}`, &whole)
	if second.Output[0].Content[0] != whole.Output[0].Content[0] || second.Usage != whole.Usage {
		t.Errorf("%+v and %+v", second, whole)
	}
	status, _, text := s.Do(http.MethodGet, "/v1/responses/"+second.ID, "")
	if err := json.Unmarshal([]byte(text), &read); status != 200 || err != nil || cmp.Diff(second, read) != "" {
		t.Errorf("%d %v %s", status, err, text)
	}
	if status, _, text := s.Do(http.MethodGet, "/v1/responses/"+second.ID+"/input_items", ""); status != 200 || !strings.Contains(text, "And then?") {
		t.Errorf("%d %s", status, text)
	}
	if status, _, _ := s.Do(http.MethodGet, "/v1/responses/"+whole.ID, ""); status != 404 {
		t.Errorf("a response that was not to be stored: %d", status)
	}
	if status, _, text := s.Do(http.MethodDelete, "/v1/responses/"+first.ID, ""); status != 200 || !strings.Contains(text, `"deleted":true`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _, _ := s.Do(http.MethodGet, "/v1/responses/"+first.ID, ""); status != 404 {
		t.Errorf("a response that was deleted: %d", status)
	}
	s.Post("/v1/responses", 200, `{"model":"storyteller","input":"And then?","max_output_tokens":8,"previous_response_id":"`+second.ID+`"}`, &read)
}

func TestStoreIsBounded(t *testing.T) {
	st := &store{most: 10 * recordBytes}
	st.init()
	last := &record{}
	for i := range 50 {
		r := &record{id: string(rune('a' + i)), response: make([]byte, recordBytes)}
		if i%4 != 0 { // as an exchange does that goes on from it
			r.previous = st.get(last.id)
		}
		st.put(r)
		if r.previous != nil {
			st.release(r.previous)
		}
		if st.used > st.most {
			t.Fatalf("after %d: %d bytes", i, st.used)
		}
		last = r
	}
	r := st.get(last.id)
	if r == nil {
		t.Fatal("the last one is not there")
	}
	if n := len(r.history()); n != 0 {
		t.Errorf("%d items", n)
	}
	for st.order.Len() > 0 {
		st.remove(st.order.Back())
	}
	if st.used == 0 {
		t.Error("a record that is held was given back")
	}
	if st.release(r); st.used != 0 {
		t.Errorf("%d bytes remain", st.used)
	}
}
