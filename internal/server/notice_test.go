package server_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/anthropic"
	"github.com/spillway/spillway/internal/server/ollama"
	"github.com/spillway/spillway/internal/server/openai"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/servertest"
)

const (
	plainTemplate = `{% for m in messages %}<|{{ m.role }}|>{{ m.content + '\n' }}{% endfor %}` // fails where there is no content
	toolTemplate  = `{% if tools %}{{ tools | tojson }}{% endif %}` + plainTemplate

	openaiTool = `"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]`
	flatTool   = `"tools":[{"type":"function","name":"add","parameters":{"type":"object"}}]`
	inputTool  = `"tools":[{"name":"add","input_schema":{"type":"object"}}]`
	called     = `"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":` +
		`{"name":"add","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"5"}]`
	hello = `"messages":[{"role":"user","content":"Hi"}]`
)

// withTemplate starts a server of all APIs whose model has a chat template.
func withTemplate(t *testing.T, template string, log *slog.Logger) *servertest.Server {
	return servertest.Start(t, servertest.Options{
		Server: server.Options{Log: log},
		Pool:   pool.Options{KeepAlive: pool.Forever, Prepare: func(c *spillway.Checkpoint) error { return c.UseTemplateText("test", template) }},
		Mount: func(s *server.Server) error {
			anthropic.Mount(s)
			ollama.Mount(s)
			return openai.Mount(s)
		},
	})
}

// An answer says that the chat template left the request's tools out, and no other answer does.
func TestToolsThatNoTemplateShows(t *testing.T) {
	cases := []struct {
		path, body string
		tools      bool // the request has some that it may use
	}{
		{"/v1/chat/completions", `"max_tokens":4,` + hello, false},
		{"/v1/chat/completions", `"max_tokens":4,` + hello + "," + openaiTool, true},
		{"/v1/chat/completions", `"max_tokens":4,"stream":true,` + hello + "," + openaiTool, true},
		{"/v1/chat/completions", `"max_tokens":4,` + called + "," + openaiTool, true},
		{"/v1/chat/completions", `"max_tokens":4,"tool_choice":"none",` + hello + "," + openaiTool, false},
		{"/v1/chat/completions", `"max_tokens":4,"tools":[],` + hello, false},
		{"/v1/chat/completions", `"max_tokens":100000,` + hello + "," + openaiTool, true}, // refused
		{"/v1/responses", `"max_output_tokens":4,"input":"Hi",` + flatTool, true},
		{"/v1/responses", `"max_output_tokens":4,"input":"Hi"`, false},
		{"/tokenize", hello + "," + openaiTool, true},
		{"/v1/messages", `"max_tokens":4,` + hello + "," + inputTool, true},
		{"/v1/messages", `"max_tokens":4,` + hello, false},
		{"/v1/messages/count_tokens", hello + "," + inputTool, true},
		{"/api/chat", `"options":{"num_predict":4},` + hello + "," + openaiTool, true},
		{"/api/chat", `"options":{"num_predict":4},"tools":[],` + hello, false},
		{"/api/chat", `"options":{"num_predict":4},` + hello, false},
	}
	for name, template := range map[string]string{"shown": toolTemplate, "not shown": plainTemplate} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			s := withTemplate(t, template, slog.New(slog.NewTextHandler(&log, nil)))
			want := 0
			for _, c := range cases {
				status, header, text := s.Do("POST", c.path, `{"model":"storyteller",`+c.body+"}")
				if status != 200 && !strings.Contains(c.body, "100000") {
					t.Fatalf("%s %s: %d %s", c.path, c.body, status, text)
				}
				told := strings.Contains(header.Get(server.NoticeHeader), "the model does not know of those in the request")
				if noticed := c.tools && template == plainTemplate; told != noticed {
					t.Errorf("%s %s: notice %q", c.path, c.body, header.Get(server.NoticeHeader))
				} else if noticed {
					want++
				}
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(log.String(), "tools_shown=false"); got != want {
				t.Errorf("%d lines of the log say so, want %d:\n%s", got, want, log.String())
			}
		})
	}
}

// Tools that a template shows only with a system message are looked for in every prompt until they were seen.
func TestToolsThatATemplateShowsAtTimes(t *testing.T) {
	s := withTemplate(t, `{% if tools and messages[0].role == 'system' %}{{ tools | tojson }}{% endif %}`+plainTemplate, nil)
	for i, want := range []bool{true, false} {
		messages := hello
		if i == 1 {
			messages = `"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi"}]`
		}
		_, header, _ := s.Do("POST", "/v1/chat/completions", `{"model":"storyteller","max_tokens":4,`+messages+","+openaiTool+"}")
		if told := header.Get(server.NoticeHeader) != ""; told != want {
			t.Errorf("request %d: notice %q", i, header.Get(server.NoticeHeader))
		}
	}
}
