package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/server/pool"
)

// What makes no sense is refused before a port is opened.
func TestServeUsage(t *testing.T) {
	for args, want := range map[string]int{
		"--port -1":                   exitUsage,
		"--port 70000":                exitUsage,
		"--max-seqs 5000":             exitUsage,
		"--max-waiting 0":             exitUsage,
		"--keep-alive soon":           exitUsage,
		"--body-limit much":           exitUsage,
		"--api-key=":                  exitUsage, // as of a variable that is not set
		"--tls-cert x":                exitUsage,
		"--model-wait -1s":            exitUsage,
		"--allowed-host=":             exitUsage,
		"--allowed-host http://a.b":   exitUsage,
		"--cors-origin a.example":     exitUsage,
		"--cors-origin https://a.b/":  exitUsage,
		"--tls-cert x --tls-key y":    exitFailed,
		"--log-format xml":            exitUsage,
		"--drain-timeout 0s":          exitUsage,
		"--dialect martian":           exitUsage,
		"--json":                      exitUsage,
		"=storyteller":                exitUsage,
		"--api-key-file /none/there":  exitFailed,
		"/none/there.gguf":            exitFailed,
		"--memory 1MiB":               exitMemory,
		"storyteller a=x b=x":         exitFailed,
		"--host 203.0.113.7 --port 0": exitFailed, // an address of nobody here
	} {
		s, out := testSession(t, nil)
		if got := s.main(append([]string{"serve"}, strings.Fields(args)...)); got != want {
			t.Errorf("serve %s: exit code %d, want %d: %s", args, got, want, out)
		}
	}
}

// Files that make no certificate are found before a model is read: there is none here.
func TestServeReadsTLSFilesFirst(t *testing.T) {
	model := filepath.Join(t.TempDir(), "no-model.gguf")
	if err := os.WriteFile(model, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, out := testSession(t, nil)
	if got := s.main([]string{"serve", model, "--port", "0", "--tls-cert", "/none/cert.pem", "--tls-key", "/none/key.pem"}); got != exitFailed {
		t.Errorf("exit code %d", got)
	}
	if text := fmt.Sprint(out); !strings.Contains(text, "TLS: open /none/cert.pem") || strings.Contains(text, "no-model") {
		t.Error(text)
	}
}

// A model that has no room is refused before clients are told that somebody listens, and so is a port that another has.
func TestServeRefusesBeforeItListens(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--port 0 --memory " + serverAlone(t), exitMemory, " is too little memory for this model"},
		{"--port 0 --chat-template nosuch", exitUsage, "there is no chat template"},
		{"--memory 256MiB --port " + port, exitFailed, "listening on 127.0.0.1:" + port + ": another program uses this port; choose one by --port"},
	} {
		s, out := testSession(t, nil)
		code := s.main(append([]string{"serve"}, strings.Fields(c.args)...))
		if text := fmt.Sprint(out); code != c.code || !strings.Contains(text, c.want) || strings.Contains(text, "listening on http") || strings.Contains(text, "draining") {
			t.Errorf("serve %s: exit code %d, want %d: %s", c.args, code, c.code, text)
		}
	}
}

// serverAlone is memory in which a server has room for what is its own, beside this process, but the embedded model has none beside it.
func serverAlone(t *testing.T) string {
	t.Helper()
	for n := 20; n < 200; n++ {
		s, out := testSession(t, nil)
		memory := fmt.Sprintf("%dMiB", n)
		if code := s.main([]string{"serve", "--port", "0", "--memory", memory}); code != exitMemory {
			t.Fatalf("%s: exit code %d: %s", memory, code, out)
		}
		if !strings.Contains(fmt.Sprint(out), "the server's own memory") {
			return memory
		}
	}
	t.Fatal("no memory does for a server alone")
	return ""
}

func TestKeepAlive(t *testing.T) {
	for text, want := range map[string]time.Duration{"forever": pool.Forever, "-1": pool.Forever, "0": 0, "30": 30 * time.Second, "5m": 5 * time.Minute} {
		if got, err := (&serveCommand{KeepAlive: text}).keepAlive(); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// The server says where it listens, answers under the names of the command line, and ends in order.
func TestServe(t *testing.T) {
	s, _ := testSession(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	s.ctx, s.stderr = ctx, w
	code := make(chan int, 1)
	go func() {
		code <- s.main(strings.Fields("serve tale=storyteller --port 0 --memory 256MiB --api-key k"))
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	url := ""
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "listening on "); ok {
			url, _, _ = strings.Cut(rest, ",")
		}
		if lines.Text() == "ready" {
			break
		}
	}
	go io.Copy(io.Discard, r)
	if url == "" {
		t.Fatal("it does not say where it listens")
	}
	for key, want := range map[string]int{"k": http.StatusOK, "x": http.StatusUnauthorized} {
		request, err := http.NewRequest(http.MethodPost, url+"/v1/completions", strings.NewReader(`{"model":"tale","prompt":"Once","max_tokens":3}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("key %s: %s", key, answer.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if got := <-code; got != exitFine {
		t.Errorf("exit code %d", got)
	}
}
