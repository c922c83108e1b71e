// Command compare runs `spillway bench` and llama.cpp's llama-bench on the same files, in turn, and
// prints the ratio of their speeds with its spread. A pair in which other programs used the
// processor is thrown away: a win over a disturbed peer is no win.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// maxOthers is the share of the processors that other programs may use during a run.
const maxOthers = 0.03

type settings struct {
	ours, peer      string
	pairs, threads  int
	prompt, decoded int
	any             bool
}

// speeds are tokens per second by the name of the test, such as "pp512".
type speeds map[string]float64

func main() {
	var s settings
	flag.StringVar(&s.ours, "ours", "spillway", "the spillway binary")
	flag.StringVar(&s.peer, "peer", "llama-bench", "the llama-bench binary")
	flag.IntVar(&s.pairs, "pairs", 5, "undisturbed pairs for each file")
	flag.IntVar(&s.threads, "threads", runtime.NumCPU(), "compute threads of both")
	flag.IntVar(&s.prompt, "p", 512, "prompt tokens")
	flag.IntVar(&s.decoded, "n", 64, "generated tokens")
	flag.BoolVar(&s.any, "disturbed", false, "keep disturbed pairs, marked, to try the program out")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: compare [flags] MODEL.gguf …")
		os.Exit(2)
	}
	for _, model := range flag.Args() {
		if err := s.compare(model); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
			os.Exit(1)
		}
	}
}

// pair is one run of each.
type pair struct {
	ours, peer speeds
	others     float64 // the larger share that other programs took
}

func (s *settings) compare(model string) error {
	fmt.Printf("\n%s: %d threads, prompt %d, decode %d; load average before: %s\n",
		filepath.Base(model), s.threads, s.prompt, s.decoded, loadAverage())
	var kept []pair
	thrown := 0
	for len(kept) < s.pairs && thrown < 2*s.pairs {
		p, err := s.runPair(model)
		if err != nil {
			return err
		}
		verdict := "kept"
		switch {
		case p.others <= maxOthers:
			kept = append(kept, p)
		case s.any:
			verdict = "disturbed, kept all the same"
			kept = append(kept, p)
		default:
			verdict = "disturbed, thrown away"
			thrown++
		}
		fmt.Printf("  pair: others %.1f %% of the processors, load %s: %s\n", 100*p.others, loadAverage(), verdict)
	}
	if len(kept) < s.pairs {
		return fmt.Errorf("only %d of %d pairs were undisturbed: other programs are running", len(kept), s.pairs)
	}
	printRows(kept)
	fmt.Printf("  %d pairs kept, %d thrown away; load average after: %s\n", len(kept), thrown, loadAverage())
	return nil
}

func (s *settings) runPair(model string) (pair, error) {
	ours, a, err := measured(s.ours, "bench", "--json", "-p", strconv.Itoa(s.prompt), "-n", strconv.Itoa(s.decoded),
		"-b", "1", "-d", "0", "-r", "1", "--threads", strconv.Itoa(s.threads), model)
	if err != nil {
		return pair{}, err
	}
	peer, b, err := measured(s.peer, "-o", "json", "-m", model, "-p", strconv.Itoa(s.prompt), "-n", strconv.Itoa(s.decoded),
		"-r", "1", "-t", strconv.Itoa(s.threads))
	if err != nil {
		return pair{}, err
	}
	p := pair{others: max(a, b)}
	if p.ours, err = readOurs(ours); err != nil {
		return pair{}, err
	}
	p.peer, err = readPeer(peer)
	return p, err
}

// measured runs a program and returns its output and the share of the processors that others used.
func measured(name string, args ...string) ([]byte, float64, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = nil
	start, before := time.Now(), busySeconds()
	out, err := cmd.Output()
	if err != nil {
		if failed, ok := err.(*exec.ExitError); ok {
			return nil, 0, fmt.Errorf("%s: %w: %s", name, err, failed.Stderr)
		}
		return nil, 0, err
	}
	own := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	others := busySeconds() - before - own.Seconds()
	return out, max(0, others) / (time.Since(start).Seconds() * float64(runtime.NumCPU())), nil
}

func readOurs(out []byte) (speeds, error) {
	var report struct {
		Rows []struct {
			Test   string `json:"test"`
			Speeds struct {
				Median float64 `json:"median"`
			} `json:"tokens_per_second"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("spillway bench printed %q: %w", out, err)
	}
	got := speeds{}
	for _, r := range report.Rows {
		got[r.Test] = r.Speeds.Median
	}
	return got, nil
}

func readPeer(out []byte) (speeds, error) {
	var rows []struct {
		Prompt  int     `json:"n_prompt"`
		Decoded int     `json:"n_gen"`
		Average float64 `json:"avg_ts"`
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		return nil, fmt.Errorf("llama-bench printed %q: %w", out, err)
	}
	got := speeds{}
	for _, r := range rows {
		if r.Prompt > 0 {
			got[fmt.Sprintf("pp%d", r.Prompt)] = r.Average
		} else {
			got[fmt.Sprintf("tg%d", r.Decoded)] = r.Average
		}
	}
	return got, nil
}

// printRows shows, for every test that both have, the medians and the ratios of the pairs.
func printRows(pairs []pair) {
	fmt.Printf("  %-8s %10s %10s   %s\n", "test", "ours t/s", "peer t/s", "ratio: median (smallest to largest)")
	var tests []string
	for test := range pairs[0].ours {
		if _, both := pairs[0].peer[test]; both {
			tests = append(tests, test)
		}
	}
	slices.Sort(tests)
	for _, test := range tests {
		var ours, peer, ratios []float64
		for _, p := range pairs {
			ours, peer = append(ours, p.ours[test]), append(peer, p.peer[test])
			ratios = append(ratios, p.ours[test]/p.peer[test])
		}
		fmt.Printf("  %-8s %10.2f %10.2f   %.2f (%.2f to %.2f)\n", test, median(ours), median(peer),
			median(ratios), slices.Min(ratios), slices.Max(ratios))
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
