package ollama

import (
	"strings"
	"testing"
)

// The memory of the vectors is leased before the first is made.
func TestManyVectors(t *testing.T) {
	s := start(t)
	body := func(n int) string { return `{"model":"storyteller","input":[` + strings.Repeat(`"a",`, n-1) + `"a"]}` }
	if status, _, text := s.Do("POST", "/api/embed", body(22_000)); status != 413 || !strings.Contains(text, "can never be answered with this memory") || !strings.Contains(text, "for vectors") {
		t.Errorf("22,000 texts: %d %.300s", status, text)
	}
	var out embedded
	if s.Post("/api/embed", 200, body(20), &out); len(out.Vectors) != 20 {
		t.Errorf("%d vectors of 20 texts", len(out.Vectors))
	}
}
