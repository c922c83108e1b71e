package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/servertest"
	"github.com/spillway/spillway/internal/server/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *servertest.Server {
	return servertest.Start(t, servertest.Options{Pool: pool.Options{KeepAlive: pool.Forever}, Mount: func(s *server.Server) error { Mount(s); return nil }})
}

type answer struct {
	Type, Role string
	Content    []struct{ Type, Text string }
	Reason     string  `json:"stop_reason"`
	Sequence   *string `json:"stop_sequence"`
	Usage      struct {
		Input  int `json:"input_tokens"`
		Read   int `json:"cache_read_input_tokens"`
		Output int `json:"output_tokens"`
	}
}

const ask = `{"model":"storyteller","max_tokens":12,"temperature":0,"messages":[{"role":"user","content":"Tell me of the sea, of ships and of the wind that carries them."}]`

func TestMessages(t *testing.T) {
	s := start(t)
	var a, marked answer
	s.Post("/v1/messages", 200, ask+"}", &a)
	if a.Type != "message" || a.Role != "assistant" || len(a.Content) != 1 || a.Content[0].Text == "" || a.Reason != "max_tokens" || a.Usage.Output != 12 || a.Usage.Read != 0 {
		t.Errorf("%+v", a)
	}
	s.Post("/v1/messages", 200, ask+`,"system":[{"type":"text","text":"","cache_control":{"type":"ephemeral"}}]}`, &marked)
	if marked.Usage.Read == 0 || marked.Usage.Read+marked.Usage.Input != a.Usage.Input {
		t.Errorf("marked for the cache: %+v, before %+v", marked.Usage, a.Usage)
	}
	var count struct {
		Tokens int `json:"input_tokens"`
	}
	s.Post("/v1/messages/count_tokens", 200, strings.Replace(ask, `"max_tokens":12,`, "", 1)+"}", &count)
	if count.Tokens != a.Usage.Input {
		t.Errorf("%d tokens counted, %d used", count.Tokens, a.Usage.Input)
	}
	stop := a.Content[0].Text[5:9]
	text, _ := json.Marshal(stop)
	var cut answer
	s.Post("/v1/messages", 200, ask+`,"stop_sequences":[`+string(text)+`]}`, &cut)
	if cut.Reason != "stop_sequence" || cut.Sequence == nil || *cut.Sequence != stop || !strings.HasPrefix(a.Content[0].Text, cut.Content[0].Text) {
		t.Errorf("%+v", cut)
	}
}

func TestStream(t *testing.T) {
	s := start(t)
	var a answer
	s.Post("/v1/messages", 200, ask+"}", &a)
	var names []string
	text := ""
	for _, e := range s.Events("/v1/messages", ask+`,"stream":true}`) {
		var d struct {
			Type  string
			Delta struct{ Text string }
		}
		if err := json.Unmarshal([]byte(e.Data), &d); err != nil || d.Type != e.Name {
			t.Errorf("%s: %s: %v", e.Name, e.Data, err)
		}
		if len(names) == 0 || names[len(names)-1] != e.Name {
			names = append(names, e.Name)
		}
		text += d.Delta.Text
	}
	const want = "message_start content_block_start content_block_delta content_block_stop message_delta message_stop"
	if got := strings.Join(names, " "); got != want || text != a.Content[0].Text {
		t.Errorf("%s\n%q, want %q", got, text, a.Content[0].Text)
	}
}

func TestRefused(t *testing.T) {
	s := start(t)
	for body, want := range map[string]string{
		`{}`:                                    "model is missing",
		`{"model":"storyteller","messages":[]}`: "max_tokens is missing",
		`{"model":"storyteller","max_tokens":0,"messages":[]}`:                                                              "max_tokens is 0",
		`{"model":"storyteller","max_tokens":1,"messages":[]}`:                                                              "messages is empty",
		`{"model":"storyteller","max_tokens":1,"messages":[{"role":"king","content":""}]}`:                                  "messages[0].role",
		`{"model":"storyteller","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image"}]}]}`:                  "messages[0].content[0].type",
		`{"model":"storyteller","max_tokens":1,"messages":[{"role":"user","content":"x"}],"temperature":-1}`:                "temperature",
		`{"model":"storyteller","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"bash_1"}]}`:     "tools[0].type",
		`{"model":"storyteller","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"any"}}`:    "no tools",
		`{"model":"storyteller","max_tokens":1,"messages":[{"role":"user","content":"x"}],"thinking":{"type":"sometimes"}}`: "thinking.type",
		ask + `,"stop_sequences":[` + strings.Repeat(`"x",`, 64) + `"x"]}`:                                                  "stop_sequences has 65 texts; at most 64",
		ask + `,"stop_sequences":["x",""]}`:                                                                                 "stop_sequences has an empty text at 1",
	} {
		var e errorBody
		s.Post("/v1/messages", 400, body, &e)
		if e.Type != "error" || e.Error.Type != "invalid_request_error" || !strings.Contains(e.Error.Message, want) {
			t.Errorf("%s: %+v, want %q", body, e, want)
		}
	}
	var e errorBody
	s.Post("/v1/messages", 404, strings.Replace(ask, "storyteller", "none", 1)+"}", &e)
	if e.Error.Type != "not_found_error" {
		t.Errorf("%+v", e)
	}
}

// Blocks become the messages that templates know, results of tools before what is said with them.
func TestBlocks(t *testing.T) {
	v, err := wire.Parse([]byte(`{"messages":[
		{"role":"user","content":"Weather?"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"weather","input":{"city":"Rome"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"21"}]},{"type":"text","text":"And?"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var b body
	if err := v.Into(&b); err != nil {
		t.Fatal(err)
	}
	if err := b.readMessages(); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(b.list)
	const want = `[{"role":"user","content":"Weather?"},{"role":"assistant","content":"I look.","reasoning_content":"Hm.","tool_calls":[{"id":"t1","type":"function",` +
		`"function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]},{"role":"tool","content":"21","tool_call_id":"t1"},{"role":"user","content":"And?"}]`
	if err != nil || string(got) != want {
		t.Errorf("%s: %v", got, err)
	}
}

// One block is open at a time, whatever comes after what.
func TestBlocksOfAStream(t *testing.T) {
	var got []string
	w := &writer{job: &job{body: &body{}}, begun: true, put: func(name string, v any) {
		data, _ := json.Marshal(v)
		got = append(got, strings.TrimPrefix(name, "content_block_")+" "+string(data))
	}}
	for _, e := range []spillway.Event{
		{Kind: spillway.EventReasoning, Text: "Hm"}, {Kind: spillway.EventContent, Text: "So"}, {Kind: spillway.EventContent, Text: "."},
		{Kind: spillway.EventCallBegin, Name: "f"}, {Kind: spillway.EventCallArguments, Text: "{}"}, {Kind: spillway.EventCallEnd},
		{Kind: spillway.EventCallBegin, Name: "g"}, {Kind: spillway.EventCallEnd},
	} {
		w.event(e)
	}
	w.close()
	var kinds []string
	for _, line := range got {
		name, data, _ := strings.Cut(line, " ")
		var x struct {
			Index int
			Delta struct{ Type string }
			Block struct{ Type, Name string } `json:"content_block"`
		}
		if err := json.Unmarshal([]byte(data), &x); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, strings.TrimSpace(strings.Join([]string{name, string(rune('0' + x.Index)), x.Block.Type + x.Delta.Type, x.Block.Name}, " ")))
	}
	const want = "start 0 thinking|delta 0 thinking_delta|delta 0 signature_delta|stop 0|start 1 text|delta 1 text_delta|delta 1 text_delta|stop 1|" +
		"start 2 tool_use f|delta 2 input_json_delta|stop 2|start 3 tool_use g|stop 3"
	if s := strings.Join(kinds, "|"); s != want {
		t.Errorf("%s", s)
	}
}
