package captest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/captest"
	"github.com/spillway/spillway/internal/testutil"
)

// TestCapServe: many clients, of whom most behave badly, against a server in a group of its own size. Nothing that was
// accepted is lost, nothing stays, the cap holds with the sockets counted, and a drain ends cleanly.
// SPILLWAY_BIG=1 makes it five minutes long.
func TestCapServe(t *testing.T) {
	bin, model := needProgram(t), testutil.SmolLM2(t)
	const memory, clients = 192 * mib, 64
	length := 25 * time.Second
	if os.Getenv("SPILLWAY_BIG") != "" {
		length = 5 * time.Minute
	}
	port := freePort(t)
	s := &soak{url: "http://127.0.0.1:" + port, address: "127.0.0.1:" + port}
	ctx, cancel := context.WithTimeout(t.Context(), length+3*time.Minute)
	defer cancel()
	pid, ended := make(chan int, 1), make(chan struct{})
	var res captest.Result
	var failed error
	go func() {
		defer close(ended)
		res, failed = captest.Run{
			Limit: memory, Cold: []string{bin, model}, Path: bin, Stdin: strings.NewReader(""), Started: func(p int) { pid <- p },
			Args: []string{"serve", "--port", port, "--memory", strconv.Itoa(memory), "--context", "1024", "m=" + model},
		}.Do(ctx)
	}()
	err := s.ready(ctx, ended)
	if err == nil {
		before := s.metrics(t)
		s.run(ctx, clients, length)
		s.settle(t, before)
		err = syscall.Kill(<-pid, syscall.SIGTERM)
	}
	<-ended
	if err != nil || failed != nil {
		t.Fatalf("%v, %v: exit %d, killed %v: %s", err, failed, res.Exit, res.Killed, res.Stderr)
	}
	t.Logf("%d complete, %d cut by us, %d refused, %d bad; peak %s, sockets %s", s.complete.Load(), s.cut.Load(), s.refused.Load(), s.bad.Load(), size(res.Peak), size(res.Sockets))
	if res.Exit != 0 || res.Killed {
		t.Errorf("exit %d, killed %v: %s", res.Exit, res.Killed, res.Stderr)
	}
	if res.Peak+res.Sockets > memory {
		t.Errorf("the kernel counted %s and %s of sockets with --memory %s", size(res.Peak), size(res.Sockets), size(memory))
	}
	for _, e := range s.errors {
		t.Error(e)
	}
	if s.complete.Load() == 0 || s.cut.Load() == 0 || s.bad.Load() == 0 {
		t.Error("the load was no load")
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// client opens a connection for each request: a server that is full closes idle ones.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// soak is the load.
type soak struct {
	url, address                string
	complete, cut, refused, bad atomic.Int64
	mu                          sync.Mutex
	errors                      []string
}

func (s *soak) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.errors) < 10 {
		s.errors = append(s.errors, fmt.Sprintf(format, args...))
	}
}

func (s *soak) ready(ctx context.Context, ended chan struct{}) error {
	for {
		resp, err := client.Get(s.url + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ended:
			return fmt.Errorf("the server ended")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// metrics reads the gauges without labels beside the model's.
func (s *soak) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	resp, err := client.Get(s.url + "/metrics")
	if err != nil {
		t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	m := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && !strings.HasPrefix(name, "#") {
			m[name] += v
		}
	}
	return m
}

func (s *soak) run(ctx context.Context, clients int, length time.Duration) {
	end := time.Now().Add(length)
	var wait sync.WaitGroup
	for c := range clients {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 7)) //nolint:gosec // a load
			for time.Now().Before(end) && ctx.Err() == nil {
				s.one(ctx, r)
			}
		})
	}
	wait.Wait()
}

func (s *soak) one(ctx context.Context, r *rand.Rand) {
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		s.answer(ctx, r, 0)
	case 4, 5:
		s.answer(ctx, r, time.Duration(r.IntN(1500))*time.Millisecond)
	case 6:
		s.raw(r, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n{\"model\":\"m\",", true)
	case 7:
		s.raw(r, "GET /v1/mod", false)
	case 8:
		s.refuse(ctx, r)
	case 9:
		s.slow(r)
	}
}

func body(r *rand.Rand, more string) string {
	words := strings.Repeat("the river runs ", 1+r.IntN(60))
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}],"max_tokens":%d,"stream":true%s}`, words, 1+r.IntN(48), more)
}

// answer reads one stream to its end, or gives up after some time if that is not 0.
func (s *soak) answer(ctx context.Context, r *rand.Rand, patience time.Duration) {
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(body(r, "")))
	if err != nil {
		s.fault("%v", err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		s.given(ctx, "no answer: %v", err)
		return
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		s.given(ctx, "a stream broke: %v", err)
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		s.refused.Add(1)
		if !bytes.Contains(data, []byte(`"message"`)) || resp.Header.Get("Retry-After") == "" {
			s.fault("refused with %d %s", resp.StatusCode, data)
		}
	case resp.StatusCode != http.StatusOK:
		s.fault("status %d: %s", resp.StatusCode, data)
	case !bytes.Contains(data, []byte(`"finish_reason":"`)) || !bytes.HasSuffix(bytes.TrimSpace(data), []byte("[DONE]")):
		s.fault("an accepted request was lost: %.300s", data)
	default:
		s.complete.Add(1)
	}
}

// given counts what failed because we gave up, and reports what failed by itself.
func (s *soak) given(ctx context.Context, format string, err error) {
	if ctx.Err() != nil {
		s.cut.Add(1)
		return
	}
	s.fault(format, err)
}

// raw sends the beginning of a request, waits, and is gone, at times with a reset.
func (s *soak) raw(r *rand.Rand, text string, reset bool) {
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		return // the server may bound its connections
	}
	if reset {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	_, _ = io.WriteString(c, text)
	time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
	_ = c.Close()
	s.bad.Add(1)
}

// refuse sends what cannot be answered and wants an error object.
func (s *soak) refuse(ctx context.Context, r *rand.Rand) {
	bodies := []string{`{"model":"m"`, `[]`, `{"model":"m","messages":"no"}`, `{"model":"none","messages":[]}`, body(r, `,"temperature":"hot"`),
		`{"model":"m","prompt":"` + strings.Repeat("word ", 3000) + `"}`}
	path := "/v1/chat/completions"
	i := r.IntN(len(bodies))
	if i == len(bodies)-1 {
		path = "/v1/completions"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(bodies[i]))
	if err != nil {
		s.fault("%v", err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		s.fault("%.60q: %v", bodies[i], err)
		return
	}
	defer resp.Body.Close()
	var e struct{ Error struct{ Message string } }
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode < 400 || json.Unmarshal(data, &e) != nil || e.Error.Message == "" {
		s.fault("%.60q was answered with %d %.200s: %v", bodies[i], resp.StatusCode, data, err)
	}
	s.bad.Add(1)
}

// slow asks for a long answer and hardly reads.
func (s *soak) slow(r *rand.Rand) {
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	text := body(r, `,"ignore_eos":true`)
	_, _ = fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	b := make([]byte, 16)
	for range 20 {
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := c.Read(b); err != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.cut.Add(1)
}

// settle waits until nothing of the load is left: no request, no block, no goroutine.
func (s *soak) settle(t *testing.T, before map[string]float64) {
	t.Helper()
	var now map[string]float64
	for range 300 {
		now = s.metrics(t)
		if now["vllm:num_requests_running"] == 0 && now["vllm:num_requests_waiting"] == 0 && now["go_goroutines"] <= before["go_goroutines"]+8 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, name := range []string{"vllm:num_requests_running", "vllm:num_requests_waiting", "spillway_kv_blocks_used"} {
		if v, ok := now[name]; !ok || v != 0 {
			t.Errorf("%s is %v after the load (there: %v)", name, v, ok)
		}
	}
	if now["go_goroutines"] == 0 || now["go_goroutines"] > before["go_goroutines"]+8 {
		t.Errorf("%v goroutines, %v before the load", now["go_goroutines"], before["go_goroutines"])
	}
}
