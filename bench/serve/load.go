package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// measured is what a turn gave.
type measured struct {
	firsts  []float64 // milliseconds until the first token of each answer
	tokens  int
	seconds float64
}

func (m measured) speed() float64 { return float64(m.tokens) / m.seconds }

func (m measured) first(share float64) float64 {
	sorted := slices.Sorted(slices.Values(m.firsts))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// spread is a median with the smallest and largest.
func spread(v []float64) string {
	sorted := slices.Sorted(slices.Values(v))
	return fmt.Sprintf("%.2f (%.2f–%.2f)", sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1])
}

// client opens a connection for each request: some servers close idle ones without a word.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ready waits until a server answers /health.
func ready(ctx context.Context, url string) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not become healthy: %w", url, errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// load sends the requests of all clients.
func load(ctx context.Context, url string, s settings, seed uint64) (measured, error) {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same prompts for all
	prefix := ids(r, s.prefix, s.vocab)
	prompts := make([][]int, s.clients*s.rounds)
	for i := range prompts {
		prompts[i] = append(slices.Clone(prefix), ids(r, s.in, s.vocab)...)
	}
	var mu sync.Mutex
	var m measured
	var errs []error
	var wait sync.WaitGroup
	begin := time.Now()
	for c := range s.clients {
		wait.Go(func() {
			for i := range s.rounds {
				first, n, err := answer(ctx, url, s, prompts[c*s.rounds+i])
				mu.Lock()
				m.firsts, m.tokens, errs = append(m.firsts, first), m.tokens+n, append(errs, err)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	m.seconds = time.Since(begin).Seconds()
	return m, errors.Join(errs...)
}

func ids(r *rand.Rand, n, vocab int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 100 + r.IntN(vocab-100)
	}
	return out
}

// answer streams one completion; it returns the milliseconds until its first token and how many there were.
func answer(ctx context.Context, url string, s settings, prompt []int) (first float64, tokens int, err error) {
	body, err := json.Marshal(map[string]any{
		"model": s.model, "prompt": prompt, "max_tokens": s.out, "temperature": 0, "ignore_eos": true, "stream": true,
		"stream_options": map[string]any{"include_usage": true},
	})
	if err != nil {
		return 0, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	begin := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return 0, 0, fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		if first == 0 {
			first = float64(time.Since(begin).Microseconds()) / 1000
		}
		var chunk struct {
			Usage *struct {
				Completion int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return 0, 0, err
		}
		if chunk.Usage != nil {
			tokens = chunk.Usage.Completion
		}
	}
	if err := lines.Err(); err != nil {
		return 0, 0, err
	}
	if tokens != s.out {
		return first, tokens, fmt.Errorf("an answer of %d tokens, not %d", tokens, s.out)
	}
	return first, tokens, nil
}
