package openai

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/server/servertest"
	"github.com/spillway/spillway/internal/testutil"
)

// small starts a server with so little memory that the race detector's own would not do.
func small(t *testing.T, memory int64) *servertest.Server {
	t.Helper()
	if testutil.Raced {
		t.Skip("skipped: the race detector takes this memory for itself")
	}
	return servertest.Start(t, servertest.Options{Memory: memory, Pool: pool.Options{Model: spillway.ModelOptions{Sequences: 32, Shared: true}}, Mount: func(s *server.Server) error { Mount(s); return nil }})
}

// What can never be answered is no reason to come again, and the answer says which memory would do; it does.
func TestWhatNeverFits(t *testing.T) {
	const memory = 64 << 20
	body := `{"model":"storyteller","prompt":"Once upon a time","n":128,"max_tokens":400,"logprobs":5,"temperature":1,"stop":["a"]}`
	var would int64
	t.Run("small", func(t *testing.T) {
		s := small(t, memory)
		status, header, text := s.Do("POST", "/v1/completions", body)
		found := regexp.MustCompile(`--memory (\d+ MiB)`).FindStringSubmatch(text)
		if status != 413 || header.Get("Retry-After") != "" || found == nil {
			t.Fatalf("%d %v %s", status, header, text)
		}
		var err error
		if would, err = budget.ParseLimit(strings.ReplaceAll(found[1], " ", ""), machine.Memory{}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("large", func(t *testing.T) {
		s := small(t, would)
		if would <= memory {
			t.Fatalf("%d bytes would do", would)
		}
		if status, _, text := s.Do("POST", "/v1/completions", body); status != 200 {
			t.Errorf("with %d bytes: %d %.300s", would, status, text)
		}
	})
}

// Structured output is there where the embedded model is, on a small memory, too.
func TestFormsOnLittleMemory(t *testing.T) {
	s := small(t, 64<<20)
	for _, form := range []string{
		`"response_format":{"type":"json_object"}`,
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"name":{"type":"string","maxLength":12},` +
			`"age":{"type":"integer","minimum":0,"maximum":150},"tags":{"type":"array","items":{"enum":["a","b"]}}},"required":["name","age"]}}}`,
		`"guided_regex":"(cat|dog)s{3,20} [0-9]{4}"`,
	} {
		status, _, text := s.Do("POST", "/v1/chat/completions", `{"model":"storyteller","messages":[{"role":"user","content":"Who?"}],"max_tokens":30,`+form+`}`)
		if status != 200 {
			t.Errorf("%s: %d %s", form, status, text)
		}
	}
}
