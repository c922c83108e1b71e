package server_test

import (
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/server"
)

// A body of many small values, which would take a hundred times its length once decoded, is refused before that.
func TestManyValues(t *testing.T) {
	s := start(t, server.Options{})
	list := func(n int) string { return `{"text":"hi","more":[` + strings.Repeat("[],", n) + `[]]}` }
	if status, _, text := s.Do("POST", "/test/echo", list(430_000)); status != 413 || !strings.Contains(text, "too many values") {
		t.Errorf("430,000 values: %d %.200s", status, text)
	}
	if status, _, text := s.Do("POST", "/test/echo", list(2_000)); status != 200 {
		t.Errorf("2,000 values: %d %.200s", status, text)
	}
	if status, _, text := s.Do("POST", "/test/echo", `{"text":"`+strings.Repeat("a, [b] {c} ", 100_000)+`"}`); status != 200 {
		t.Errorf("one long text: %d %.200s", status, text)
	}
}
