package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/servertest"
	"github.com/spillway/spillway/internal/server/wire"
)

var testAPI = &server.API{Name: "test", Prefix: "/test/", Error: func(e *server.Error) any {
	return map[string]any{"test": e.Message, "param": e.Param, "code": e.Code}
}}

// mount registers paths that try what handlers can do.
func mount(s *server.Server) error {
	s.Handle("POST /test/echo", testAPI, func(x *server.Exchange) error {
		var body struct {
			Text string `json:"text"`
		}
		if err := x.Body(&body); err != nil {
			return err
		}
		return x.JSON(http.StatusOK, map[string]string{"text": body.Text})
	})
	s.Handle("GET /test/panic", testAPI, func(*server.Exchange) error { panic("oh") })
	s.Handle("GET /test/fail", testAPI, func(*server.Exchange) error { return errors.New("it broke") })
	s.Handle("POST /test/story", testAPI, story)
	s.Handle("GET /test/flood", testAPI, flood)
	return nil
}

// flood streams until the client is lost.
func flood(x *server.Exchange) error {
	out := x.Lines()
	for {
		if err := out.Line(strings.Repeat("x", 1000)); err != nil {
			return err
		}
	}
}

// story streams an answer.
func story(x *server.Exchange) error {
	var body struct {
		Model  string `json:"model"`
		Prompt string `json:"prompt"`
		Tokens int    `json:"tokens"`
	}
	if err := x.Body(&body); err != nil {
		return err
	}
	h, err := x.Model(body.Model)
	if err != nil {
		return err
	}
	r := spillway.Request{Prompt: body.Prompt, MaxTokens: body.Tokens, Sampling: &spillway.Sampling{}, IgnoreEnd: true, Read: true}
	if err := x.Prepare(h, &r, int64(len(body.Prompt)), 1); err != nil {
		return err
	}
	out := x.Lines()
	r.Events = func(e spillway.Event) { _ = out.Line(e.Text) }
	a, err := x.Generate(h, r)
	if err != nil {
		if out.Started() {
			_ = out.Line(map[string]string{"error": err.Error()})
		}
		return err
	}
	return out.Line(map[string]int{"tokens": len(a.IDs)})
}

func start(t *testing.T, o server.Options) *servertest.Server {
	return servertest.Start(t, servertest.Options{Server: o, Mount: mount})
}

func TestRoutes(t *testing.T) {
	s := start(t, server.Options{Version: "1.2"})
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/health", 200, `{"status":"ok"}`},
		{"GET", "/ready", 200, `{"status":"ok"}`},
		{"GET", "/version", 200, `"version":"1.2"`},
		{"GET", "/nothing", 404, `{"error":{"message":"there is no GET /nothing","type":"invalid_request_error","param":null,"code":"not_found"}}`},
		{"GET", "/test/nothing", 404, `{"code":"not_found","param":"","test":"there is no GET /test/nothing"}`},
		{"GET", "/test/echo", 405, `"test":"GET /test/echo is not possible; there is POST"`},
		{"GET", "/test/fail", 500, `"test":"it broke"`},
		{"GET", "/test/panic", 500, `an internal error`},
	} {
		status, header, text := s.Do(c.method, c.path, "")
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, status, text, c.status, c.want)
		}
		if header.Get("X-Request-Id") == "" {
			t.Errorf("%s: no request id", c.path)
		}
	}
	if _, header, _ := s.Do("GET", "/health", "", "X-Request-Id", "mine"); header.Get("X-Request-Id") != "mine" {
		t.Errorf("the request's id is not kept: %s", header)
	}
}

func TestBodies(t *testing.T) {
	s := start(t, server.Options{BodyLimit: 1 << 20})
	long := strings.Repeat("x", 100<<10)
	for _, c := range []struct {
		body   io.Reader
		status int
		want   string
	}{
		{strings.NewReader(`{"text":"a"}`), 200, `{"text":"a"}`},
		{strings.NewReader(`{"text":"` + long + `"}`), 200, long},
		{io.MultiReader(strings.NewReader(`{"text":"`), strings.NewReader(long), strings.NewReader(`"}`)), 200, long}, // chunked
		{strings.NewReader(`{"text":5}`), 400, `{"code":"invalid_value","param":"text","test":"text is a number, not a string"}`},
		{strings.NewReader(``), 400, "the request is empty"},
		{strings.NewReader(`{"text":"` + strings.Repeat(long, 11) + `"}`), 413, "too large"},
		{io.MultiReader(strings.NewReader(`{"text":"` + strings.Repeat(long, 11) + `"}`)), 413, "too large"},
	} {
		r, err := http.NewRequest("POST", s.URL+"/test/echo", c.body)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.Client.Do(r)
		if err != nil {
			t.Error(err) // a refused body may break the connection, but the answer comes first
			continue
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.status || !strings.Contains(string(text), c.want) {
			t.Errorf("%d %.200s, want %d %.100s", answer.StatusCode, text, c.status, c.want)
		}
	}
}

// A body that never comes to its end costs its sender the answer, and nobody else.
func TestBodyThatStops(t *testing.T) {
	s := start(t, server.Options{ReadTimeout: 50 * time.Millisecond})
	c := dial(t, s)
	fmt.Fprintf(c, "POST /test/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusBadRequest {
		t.Errorf("%v %v", answer, err)
	}
}

func dial(t *testing.T, s *servertest.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("# keys\n\n one \ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := server.ReadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, server.Options{Keys: append(keys, "three", "")}) // an empty one lets nobody in
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"Authorization", "Bearer one", 200}, {"Authorization", "bearer two", 200}, {"x-api-key", "three", 200},
		{"Authorization", "Bearer four", 401}, {"Authorization", "one", 401}, {"x-api-key", "", 401}, {"X-Other", "one", 401},
	} {
		status, _, text := s.Do("POST", "/test/echo", `{"text":"a"}`, c.name, c.value)
		if status != c.status {
			t.Errorf("%s: %s: %d %s", c.name, c.value, status, text)
		}
	}
	if status, _, _ := s.Do("GET", "/health", ""); status != 200 {
		t.Errorf("health needs a key: %d", status)
	}
	if err := os.WriteFile(file, []byte("# none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := server.ReadKeys(file); err == nil {
		t.Error("a file without keys is accepted: everybody could come in")
	}
}

func TestCORS(t *testing.T) {
	s := start(t, server.Options{CORSOrigins: []string{"https://a.example"}, Keys: []string{"k"}})
	status, header, _ := s.Do("OPTIONS", "/test/echo", "", "Origin", "https://a.example", "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization, content-type")
	if status != 204 || header.Get("Access-Control-Allow-Origin") != "https://a.example" || header.Get("Access-Control-Allow-Headers") != "authorization, content-type" {
		t.Errorf("%d %v", status, header)
	}
	if _, header, _ := s.Do("GET", "/health", "", "Origin", "https://b.example"); header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin is let in: %v", header)
	}
	if _, header, _ := s.Do("GET", "/health", "", "Origin", "https://a.example"); header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("the origin is not let in: %v", header)
	}
}

func TestStory(t *testing.T) {
	s := start(t, server.Options{})
	status, header, text := s.Do("POST", "/test/story", `{"model":"storyteller","prompt":"Once","tokens":5}`)
	if status != 200 || header.Get("Content-Type") != "application/x-ndjson" || !strings.HasSuffix(text, "{\"tokens\":5}\n") {
		t.Errorf("%d %s", status, text)
	}
	for body, want := range map[string]int{
		`{"model":"none","prompt":"x","tokens":5}`:                                            404,
		`{"model":"storyteller","prompt":"x","tokens":5000}`:                                  400,
		`{"model":"storyteller","prompt":"` + strings.Repeat("word ", 1000) + `","tokens":5}`: 400,
		`{"model":"storyteller","prompt":"` + strings.Repeat("word ", 1e6) + `","tokens":5}`:  400,
	} {
		if status, header, text := s.Do("POST", "/test/story", body); status != want || header.Get("Content-Type") != "application/json" {
			t.Errorf("%.80s: %d %s", body, status, text)
		}
	}
}

// A client that leaves in the midst of an answer gives back its seat and its memory; the end of the test checks
// the latter.
func TestClientLeaves(t *testing.T) {
	s := start(t, server.Options{})
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "POST", s.URL+"/test/story", strings.NewReader(`{"model":"storyteller","prompt":"Once","tokens":400}`))
		answer, err := s.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		cancel()
		answer.Body.Close()
	}
	waitIdle(t, s)
}

// A client that stops reading loses its stream, and the server's goroutine with it: the drain would wait for
// it otherwise.
func TestClientStopsReading(t *testing.T) {
	s := start(t, server.Options{WriteTimeout: 100 * time.Millisecond, DrainTimeout: time.Minute})
	c := dial(t, s)
	if _, err := fmt.Fprint(c, "GET /test/flood HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := s.Stop(); err != nil || time.Since(begin) > 30*time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
}

// waitIdle waits until no request holds the model.
func waitIdle(t *testing.T, s *servertest.Server) {
	t.Helper()
	for range 1000 {
		state, err := s.Models.Find(servertest.Model)
		if err != nil {
			t.Fatal(err)
		}
		if state.Users == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("requests of clients that left still run")
}

// What does not finish before the drain's deadline ends with an error in its stream, and Stop returns.
func TestDrain(t *testing.T) {
	s := start(t, server.Options{DrainTimeout: 50 * time.Millisecond})
	r, _ := http.NewRequest("POST", s.URL+"/test/story", strings.NewReader(`{"model":"storyteller","prompt":"Once","tokens":490}`))
	answer, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatalf("the stream broke: %v", err)
	}
	if text := string(rest); !strings.Contains(text, "the server is stopping") && !strings.Contains(text, `{"tokens":490}`) {
		t.Errorf("the stream ends with %q", text[max(len(text)-200, 0):])
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://")); err == nil {
		t.Error("connections are still taken")
	}
}

// One more connection than there may be waits until another one is closed, or idle.
func TestConnections(t *testing.T) {
	s := start(t, server.Options{Connections: 2})
	get := func(c net.Conn) error {
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := fmt.Fprint(c, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
			return err
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && answer.StatusCode != 200 {
			err = errors.New(answer.Status)
		}
		return err
	}
	a, b := dial(t, s), dial(t, s)
	if err := errors.Join(get(a), get(b)); err != nil {
		t.Fatal(err)
	}
	if err := get(dial(t, s)); err != nil { // a or b was idle
		t.Error(err)
	}
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			if err := get(dial(t, s)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestErrorOf(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   server.Code
	}{
		{&wire.FieldError{Path: "n", What: "is odd"}, 400, server.CodeInvalid},
		{fmt.Errorf("x: %w", &spillway.TooLongError{Prompt: 5, Context: 4}), 400, server.CodeTooLong},
		{&pool.UnknownError{Name: "x"}, 404, server.CodeNoModel},
		{&spillway.QueueFullError{}, 429, server.CodeBusy},
		{&spillway.NoRoomError{}, 503, server.CodeUnavailable},
		{&spillway.TooSmallError{}, 503, server.CodeUnavailable},
		{&pool.BusyError{Err: &spillway.TooSmallError{}}, 503, server.CodeUnavailable},
		{spillway.ErrClosed, 503, server.CodeUnavailable},
		{&spillway.DeadlineError{}, 504, server.CodeTimeout},
		{errors.New("x"), 500, server.CodeInternal},
	} {
		e := server.ErrorOf(c.err)
		if e.Status != c.status || e.Code != c.code {
			t.Errorf("%v: %d %s", c.err, e.Status, e.Code)
		}
		if (e.Status == 429) != (e.RetryAfter > 0) && e.Status != 503 {
			t.Errorf("%v: try again after %s", c.err, e.RetryAfter)
		}
	}
}
