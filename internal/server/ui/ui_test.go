package ui

import (
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// elsewhere are addresses that the page would load something from.
var elsewhere = regexp.MustCompile(`(?i)(src|href|url|import|fetch)\s*[=(]\s*["']?(https?:)?//`)

func TestThePageIsWhole(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Server: server.Options{Keys: []string{"secret"}}, Mount: func(s *server.Server) error { Mount(s); return nil }})
	status, header, page := s.Do("GET", "/", "")
	if status != 200 || header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Fatalf("%d, %v", status, header)
	}
	parts := regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(parts) != 2 {
		t.Errorf("the page loads %v", parts)
	}
	for _, p := range parts {
		status, header, text := s.Do("GET", p[1], "")
		if status != 200 || header.Get("Content-Type") == "" || elsewhere.MatchString(text) {
			t.Errorf("%s: %d, %s", p[1], status, header.Get("Content-Type"))
		}
	}
	if elsewhere.MatchString(page) || strings.Contains(page, "<script>") || strings.Contains(page, "style=") {
		t.Error("the page holds what its own policy forbids")
	}
	for _, path := range []string{"/ui/none.js", "/ui/..%2fui.go", "/ui/"} {
		if status, _, _ := s.Do("GET", path, ""); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}
