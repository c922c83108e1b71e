package ollama

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

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

// lines posts a request and decodes the lines of its stream.
func lines[T any](t *testing.T, s *servertest.Server, path, body string) (all []T) {
	t.Helper()
	status, header, text := s.Do("POST", path, body)
	if status != 200 || header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d %s: %s", status, header.Get("Content-Type"), text)
	}
	for line := range strings.Lines(text) {
		var x T
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, x)
	}
	return all
}

const chatBody = `{"model":"storyteller","messages":[{"role":"user","content":"Once"}],"options":{"temperature":0,"num_predict":8}`

func TestChat(t *testing.T) {
	s := start(t)
	var whole chatLine
	s.Post("/api/chat", 200, chatBody+`,"stream":false,"logprobs":true,"top_logprobs":2}`, &whole)
	if whole.Message.Content == "" || !whole.Done || whole.Reason != "length" || whole.Tokens != 8 || whole.PromptTokens == 0 || whole.Total == 0 || len(whole.LogProbs) != 8 || len(whole.LogProbs[0].Top) != 2 {
		t.Errorf("%+v", whole)
	}
	text := ""
	all := lines[chatLine](t, s, "/api/chat", chatBody+"}")
	for i, l := range all {
		text += l.Message.Content
		if l.Done != (i == len(all)-1) || l.Message.Role != "assistant" {
			t.Errorf("line %d: %+v", i, l)
		}
	}
	if text != whole.Message.Content || all[len(all)-1].Tokens != 8 {
		t.Errorf("the stream says %q, the whole %q", text, whole.Message.Content)
	}
}

// A call comes as a whole, whatever pieces it was read in; one that is cut off does not, streamed or not.
func TestCalls(t *testing.T) {
	begin := spillway.Event{Kind: spillway.EventCallBegin, Name: "f"}
	part := func(text string) spillway.Event {
		return spillway.Event{Kind: spillway.EventCallArguments, Text: text}
	}
	end := spillway.Event{Kind: spillway.EventCallEnd}
	for _, c := range []struct {
		events []spillway.Event
		want   string // arguments
	}{
		{[]spillway.Event{begin, part(`{"a":`), part(`1}`), end}, `{"a":1}`},
		{[]spillway.Event{begin, part(`{"a":1}`)}, `{"a":1}`},
		{[]spillway.Event{begin, part(`{"a":`)}, ""},
		{[]spillway.Event{begin}, ""},
		{nil, ""},
	} {
		got, whole := "", ""
		s := speech{send: func(p piece) {
			for _, c := range p.calls {
				got += string(c.Function.Arguments)
			}
		}}
		arguments := ""
		for _, e := range c.events {
			s.event(e)
			arguments += e.Text
		}
		s.endCall()
		for _, c := range callOf(spillway.ToolCall{Name: "f", Arguments: arguments}) {
			whole += string(c.Function.Arguments)
		}
		if got != c.want || whole != c.want {
			t.Errorf("%v: %s as a stream, %s whole, want %s", c.events, got, whole, c.want)
		}
	}
}

func TestGenerateGoesOn(t *testing.T) {
	s := start(t)
	const body = `{"model":"storyteller","prompt":"Once upon","raw":RAW,"stream":false,"options":{"temperature":0,"num_predict":6}`
	var a, b, raw generateLine
	s.Post("/api/generate", 200, strings.Replace(body, "RAW", "false", 1)+"}", &a)
	s.Post("/api/generate", 200, strings.Replace(body, "RAW", "true", 1)+"}", &raw)
	context, _ := json.Marshal(a.Context)
	s.Post("/api/generate", 200, `{"model":"storyteller","prompt":"","stream":false,"options":{"temperature":0,"num_predict":6},"context":`+string(context)+"}", &b)
	if len(a.Context) != a.PromptTokens+a.Tokens || b.PromptTokens != len(a.Context) || b.Response == "" || raw.Context != nil || raw.Response == "" {
		t.Errorf("%+v\n%+v\n%+v", a, b, raw)
	}
}

func TestKeepAlive(t *testing.T) {
	s := start(t)
	var l chatLine
	s.Post("/api/chat", 200, `{"model":"storyteller","keep_alive":"5m"}`, &l)
	if l.Reason != "load" || !l.Done {
		t.Errorf("%+v", l)
	}
	var p list
	get(t, s, "/api/ps", &p)
	if len(p.Models) != 1 {
		t.Fatalf("%+v", p)
	}
	if at, err := time.Parse(time.RFC3339Nano, p.Models[0].Expires); err != nil || time.Until(at) > 6*time.Minute || p.Models[0].Size == 0 {
		t.Errorf("%+v: %v", p.Models[0], err)
	}
	s.Post("/api/generate", 200, `{"model":"storyteller","keep_alive":0}`, &l)
	for range 200 {
		if get(t, s, "/api/ps", &p); len(p.Models) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if l.Reason != "unload" || len(p.Models) != 0 {
		t.Errorf("%+v, %+v", l, p)
	}
	var k keepAlive
	for text, want := range map[string]time.Duration{`30`: 30 * time.Second, `"5m"`: 5 * time.Minute, `-1`: pool.Forever, `"-1m"`: pool.Forever, `0`: 0} {
		v, _ := wire.Parse([]byte(text))
		if err := k.ReadJSON(v); err != nil || k.time != want {
			t.Errorf("%s: %v, %v", text, k.time, err)
		}
	}
}

func get(t *testing.T, s *servertest.Server, path string, into any) {
	t.Helper()
	status, _, text := s.Do("GET", path, "")
	if err := json.Unmarshal([]byte(text), into); status != 200 || err != nil {
		t.Fatalf("%s: %d %s: %v", path, status, text, err)
	}
}

func TestModels(t *testing.T) {
	s := start(t)
	var all list
	if get(t, s, "/api/tags", &all); len(all.Models) != 1 || all.Models[0].Name != "storyteller" || all.Models[0].Details.Size != "3.5M" || all.Models[0].Digest == "" {
		t.Errorf("%+v", all)
	}
	var x shown
	if s.Post("/api/show", 200, `{"model":"storyteller:latest"}`, &x); x.Info["general.architecture"] != "qwen3" || x.Capabilities[0] != "completion" {
		t.Errorf("%+v", x)
	}
	var e embedded
	if s.Post("/api/embed", 200, `{"model":"storyteller","input":["a","a cat"],"dimensions":4}`, &e); len(e.Vectors) != 2 || len(e.Vectors[1]) != 4 || e.Tokens == 0 {
		t.Errorf("%+v", e)
	}
	long, _ := json.Marshal(strings.Repeat("word ", 700))
	if s.Post("/api/embed", 200, `{"model":"storyteller","input":`+string(long)+`}`, &e); e.Tokens != 512 {
		t.Errorf("a long text was cut to %d tokens", e.Tokens)
	}
}

func TestRefused(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/api/chat", `{"model":"none","messages":[{"role":"user","content":"x"}]}`, 404, "none"},
		{"/api/generate", `{"prompt":"x"}`, 400, "model is missing"},
		{"/api/chat", `{"model":"storyteller","messages":[{"role":"king"}]}`, 400, "messages[0].role"},
		{"/api/chat", `{"model":"storyteller","messages":7}`, 400, "messages"},
		{"/api/chat", chatBody[:len(chatBody)-1] + `,"temperature":"x"}}`, 400, "options.temperature"},
		{"/api/chat", chatBody + `,"think":7}`, 400, "think"},
		{"/api/chat", chatBody + `,"keep_alive":"soon"}`, 400, "keep_alive"},
		{"/api/generate", `{"model":"storyteller","prompt":"x","suffix":"y"}`, 400, "suffix"},
		{"/api/generate", `{"model":"storyteller","prompt":"x","context":[99999999]}`, 400, "context"},
		{"/api/generate", `{"model":"storyteller","prompt":"x","options":{"mirostat":1}}`, 400, "mirostat"},
		{"/api/generate", `{"model":"storyteller","prompt":"x","options":{"stop":[` + strings.Repeat(`"x",`, 64) + `"x"]}}`, 400, "options.stop has 65 texts; at most 64"},
		{"/api/chat", chatBody[:len(chatBody)-1] + `,"stop":[""]}}`, 400, "options.stop has an empty text at 0"},
		{"/api/embed", `{"model":"storyteller","input":["x"],"dimensions":-1}`, 400, "dimensions"},
		{"/api/embed", `{"model":"storyteller","input":` + `["` + strings.Repeat("word ", 700) + `"],"truncate":false}`, 400, "context"},
	} {
		var e struct{ Error string }
		if s.Post(c.path, c.status, c.body, &e); !strings.Contains(e.Error, c.want) {
			t.Errorf("%s: %q, want %q", c.body, e.Error, c.want)
		}
	}
}
