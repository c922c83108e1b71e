package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/servertest"
)

// ask sends a request with a host of its own.
func ask(t *testing.T, s *servertest.Server, method, path, host, origin string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(`{"text":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("Content-Type", "text/plain") // what pages may send without asking
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	answer, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// Pages of other sites cannot use the server, though a browser sends what they want; those that it lets in can.
func TestOtherSites(t *testing.T) {
	s := start(t, server.Options{CORSOrigins: []string{"https://a.example"}, AllowedHosts: []string{"my.example:443"}, Host: "box"})
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"", "", 200}, {"localhost" + port, "", 200}, {"127.3.0.1", "", 200}, {"[::1]:99", "", 200}, {"x.localhost", "", 200}, {"BOX" + port, "", 200},
		{"my.example", "", 200}, {"evil.example" + port, "", 403}, {"10.0.0.1", "", 403}, {"localhost.evil.example", "", 403},
		{"", "https://evil.example", 403}, {"", "null", 403}, {"", "https://a.example", 200}, {"", "https://a.example.evil.example", 403},
		{"localhost" + port, "http://localhost" + port, 200}, {"localhost" + port, "http://localhost:1", 403}, {"localhost", "http://localhost:80", 200},
		{"my.example", "https://my.example", 200}, {"my.example:443", "https://my.example", 200}, {"my.example", "file://my.example", 403},
		{"evil.example", "http://evil.example", 403},
	} {
		if c.host == "" {
			c.host = "127.0.0.1" + port
		}
		status, text := ask(t, s, "POST", "/test/echo", c.host, c.origin)
		if status != c.want || status == 403 && !strings.Contains(text, `{"code":"forbidden","param":"","test":"`) {
			t.Errorf("host %s, origin %s: %d %s, want %d", c.host, c.origin, status, text, c.want)
		}
	}
	for path, want := range map[string]int{"/health": 200, "/test/fail": 403} { // what is behind keys is nobody else's to read
		if status, text := ask(t, s, "GET", path, "evil.example", ""); status != want {
			t.Errorf("GET %s: %d %s", path, status, text)
		}
	}
}

// With * every site is let in, as the operator said.
func TestEverySite(t *testing.T) {
	s := start(t, server.Options{CORSOrigins: []string{"*"}, AllowedHosts: []string{"*"}})
	if status, text := ask(t, s, "POST", "/test/echo", "any.example", "null"); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}
