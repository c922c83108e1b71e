package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
)

// A test is what both programs do: prompt or generated tokens, of some sequences, at a depth.
type test struct {
	name                          string
	prompt, decoded, batch, depth int
}

var testName = regexp.MustCompile(`^(pp|tg)(\d+)(?:x(\d+))?(?:@d(\d+))?$`)

func parseTest(name string) (test, error) {
	m := testName.FindStringSubmatch(name)
	if m == nil {
		return test{}, fmt.Errorf("%q is no test; write pp512, tg64, tg64x8 or tg64@d8192", name)
	}
	number := func(s string, otherwise int) int {
		if s == "" {
			return otherwise
		}
		n, _ := strconv.Atoi(s) // the pattern has digits only
		return n
	}
	t := test{name: name, batch: number(m[3], 1), depth: number(m[4], 0)}
	if n := number(m[2], 0); m[1] == "pp" {
		t.prompt = n
	} else {
		t.decoded = n
	}
	if t.batch > 1 && (t.prompt > 0 || t.depth > 0) {
		return test{}, fmt.Errorf("%q: several sequences are compared at depth 0, generating", name)
	}
	return t, nil
}

// ours are the arguments of spillway.
func (t test) ours(model string, threads int) []string {
	return []string{"bench", "--json", "-p", strconv.Itoa(t.prompt), "-n", strconv.Itoa(t.decoded), "-b", strconv.Itoa(t.batch),
		"-d", strconv.Itoa(t.depth), "-r", "1", "--threads", strconv.Itoa(threads), model}
}

// peer is the program of llama.cpp and its arguments; the cache is in f16 in both.
func (t test) peer(model string, threads int) (program string, args []string) {
	if t.batch == 1 {
		return "llama-bench", []string{"-o", "json", "-m", model, "-p", strconv.Itoa(t.prompt), "-n", strconv.Itoa(t.decoded),
			"-d", strconv.Itoa(t.depth), "-r", "1", "-t", strconv.Itoa(threads)}
	}
	return "llama-batched-bench", []string{"--output-format", "jsonl", "-m", model, "-npp", "1", "-ntg", strconv.Itoa(t.decoded),
		"-npl", strconv.Itoa(t.batch), "-c", strconv.Itoa(t.batch * (t.decoded + 16)), "-t", strconv.Itoa(threads), "-tb", strconv.Itoa(threads)}
}

// readOurs takes tokens per second from the one row of a bench.
func readOurs(out []byte) (float64, error) {
	var report struct {
		Rows []struct {
			Speeds struct {
				Median float64 `json:"median"`
			} `json:"tokens_per_second"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Rows) != 1 {
		return 0, fmt.Errorf("spillway bench printed %q: %w", out, err)
	}
	return report.Rows[0].Speeds.Median, nil
}

func (t test) readPeer(out []byte) (float64, error) {
	if t.batch > 1 {
		return readBatched(out)
	}
	var rows []struct {
		Average float64 `json:"avg_ts"`
	}
	if err := json.Unmarshal(out, &rows); err != nil || len(rows) != 1 {
		return 0, fmt.Errorf("llama-bench printed %q: %w", out, err)
	}
	return rows[0].Average, nil
}

// readBatched takes the speed of generation from the line of llama-batched-bench that is JSON.
func readBatched(out []byte) (float64, error) {
	for line := range bytes.Lines(out) {
		var row struct {
			Speed float64 `json:"speed_tg"`
		}
		if json.Unmarshal(line, &row) == nil && row.Speed > 0 {
			return row.Speed, nil
		}
	}
	return 0, fmt.Errorf("llama-batched-bench printed %q", out)
}
