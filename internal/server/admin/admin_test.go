package admin

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/openai"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, keys ...string) *servertest.Server {
	m := NewMetrics(nil)
	return servertest.Start(t, servertest.Options{
		Server: server.Options{Observer: m, Keys: keys, Version: "1.2"}, Pool: pool.Options{KeepAlive: pool.Forever},
		Mount: func(s *server.Server) error { openai.Mount(s); Mount(s, m); return nil },
	})
}

// line is a sample or a comment of Prometheus' text format.
var line = regexp.MustCompile(`^(# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+|[a-zA-Z_:][a-zA-Z0-9_:]*(\{[a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*\})? (\+Inf|[-+0-9.e]+))$`)

func TestMetrics(t *testing.T) {
	s := start(t)
	var a struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	s.Post("/v1/completions", 200, `{"model":"storyteller","prompt":"Once upon a time","max_tokens":5,"temperature":0,"ignore_eos":true}`, &a)
	status, header, text := s.Do("GET", "/metrics", "")
	if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%d, %s", status, header.Get("Content-Type"))
	}
	for l := range strings.Lines(text) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("not in the format: %q", l)
		}
	}
	for _, want := range []string{
		`vllm:generation_tokens_total{model_name="storyteller"} 5`, `vllm:num_requests_running{model_name="storyteller"} 0`,
		`vllm:request_success_total{model_name="storyteller",finished_reason="length"} 1`, `vllm:time_to_first_token_seconds_count{model_name="storyteller"} 1`,
		`vllm:inter_token_latency_seconds_bucket{model_name="storyteller",le="+Inf"} 4`, `spillway_kv_blocks_used{model_name="storyteller"} 0`,
		`spillway_memory_limit_bytes 2.68435456e+08`, `# TYPE vllm:time_to_first_token_seconds histogram`, `spillway_info{version="1.2"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestStateIsBehindTheKeys(t *testing.T) {
	s := start(t, "secret")
	for path, want := range map[string]int{"/admin/state": 401, "/metrics": 200} {
		if status, _, text := s.Do("GET", path, ""); status != want {
			t.Errorf("%s without a key: %d %s", path, status, text)
		}
	}
	_, _, text := s.Do("GET", "/admin/state", "", "Authorization", "Bearer secret")
	var st State
	if err := json.Unmarshal([]byte(text), &st); err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, p := range st.Memory.Pools {
		sum += p.Used
	}
	if sum != st.Memory.Used || st.Memory.Limit != servertest.Memory || len(st.Models) != 1 || !st.Models[0].Loaded || st.Models[0].KV.Blocks == 0 || st.Models[0].Weights.Pinned == 0 {
		t.Errorf("%s", text)
	}
}

func TestHistogram(t *testing.T) {
	h := newHistogram([]float64{1, 2})
	for _, v := range []float64{0.5, 1, 1.5, 3} {
		h.add(v)
	}
	x := newText()
	x.histogram("h", "Help.", h, label{"m", "a\"b\n"})
	const want = "# HELP h Help.\n# TYPE h histogram\nh_bucket{m=\"a\\\"b\\n\",le=\"1\"} 2\nh_bucket{m=\"a\\\"b\\n\",le=\"2\"} 3\n" +
		"h_bucket{m=\"a\\\"b\\n\",le=\"+Inf\"} 4\nh_sum{m=\"a\\\"b\\n\"} 6\nh_count{m=\"a\\\"b\\n\"} 4\n"
	if got := string(x.bytes()); got != want {
		t.Errorf("%s", got)
	}
}

func TestFailedAnswersCountAsErrors(t *testing.T) {
	m := NewMetrics(nil)
	m.Done(server.Generation{Model: "m", Prompt: 3, Err: errors.New("x"), Total: time.Second})
	x := newText()
	m.write(x)
	if got := string(x.bytes()); !strings.Contains(got, `finished_reason="error"} 1`) || !strings.Contains(got, `vllm:e2e_request_latency_seconds_count{model_name="m"} 0`) {
		t.Errorf("%s", got)
	}
}

// A change of the cap holds at once; what is wrong is refused and changes nothing.
func TestBudget(t *testing.T) {
	s := start(t)
	const ask = `{"model":"storyteller","prompt":"Once upon a time","max_tokens":20,"temperature":0,"ignore_eos":true}`
	var before, after struct{ Choices []struct{ Text string } }
	s.Post("/v1/completions", 200, ask, &before)
	var m Memory
	s.Post("/admin/budget", 200, `{"memory":"200MiB"}`, &m)
	if m.Limit != 200<<20 || m.Used > m.Limit {
		t.Errorf("%+v", m)
	}
	if s.Post("/v1/completions", 200, ask, &after); after.Choices[0].Text != before.Choices[0].Text {
		t.Errorf("%q became %q", before.Choices[0].Text, after.Choices[0].Text)
	}
	for body, want := range map[string]string{`{"memory":1000}`: "needs at least", `{}`: "memory is null", `{"memory":"lots"}`: "lots", `{"memory":-5}`: "positive"} {
		var e struct{ Error struct{ Message string } }
		if s.Post("/admin/budget", 400, body, &e); !strings.Contains(e.Error.Message, want) {
			t.Errorf("%s: %q, want %q", body, e.Error.Message, want)
		}
	}
	if _, _, text := s.Do("GET", "/admin/budget", ""); !strings.Contains(text, `"limit":209715200`) {
		t.Error(text)
	}
}
