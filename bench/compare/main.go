// Command compare runs `spillway bench` and llama.cpp's llama-bench or llama-batched-bench on the same
// files, test by test, in turn, and prints the ratio of their speeds with its spread. A pair in which other
// programs used the processor is thrown away: a win over a disturbed peer is no win.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// maxOthers is the share of the processors that other programs may use during a run.
const maxOthers = 0.03

type settings struct {
	ours, peer     string // the binary; the folder with the peer's
	pairs, threads int
	any            bool
	tests          []test
}

func main() {
	var s settings
	var tests string
	flag.StringVar(&s.ours, "ours", "spillway", "the spillway binary")
	flag.StringVar(&s.peer, "peer", ".", "the folder with llama-bench and llama-batched-bench")
	flag.IntVar(&s.pairs, "pairs", 5, "undisturbed pairs for each test")
	flag.IntVar(&s.threads, "threads", runtime.NumCPU(), "compute threads of both")
	flag.StringVar(&tests, "tests", "tg64 pp512", "ppN prompt tokens, tgN generated ones; xB sequences and @dD tokens of depth may follow: tg64x8, pp512@d8192")
	flag.BoolVar(&s.any, "disturbed", false, "keep disturbed pairs, marked, to try the program out")
	flag.Parse()
	err := s.parse(tests)
	if err == nil && flag.NArg() == 0 {
		err = fmt.Errorf("usage: compare [flags] MODEL.gguf …")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	failed := false
	for _, model := range flag.Args() {
		if err := s.compare(model); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func (s *settings) parse(tests string) error {
	for _, name := range strings.Fields(tests) {
		t, err := parseTest(name)
		if err != nil {
			return err
		}
		s.tests = append(s.tests, t)
	}
	return nil
}

// pair is one run of each, in tokens per second.
type pair struct {
	ours, peer float64
	others     float64 // the larger share that other programs took
}

func (s *settings) compare(model string) error {
	fmt.Printf("\n%s: %d threads; load average before: %s\n", filepath.Base(model), s.threads, loadAverage())
	fmt.Printf("  %-14s %10s %10s   %-38s %s\n", "test", "ours t/s", "peer t/s", "ratio: median (smallest to largest)", "pairs, work of other programs")
	var failed error
	for _, t := range s.tests {
		if err := s.compareTest(model, t); err != nil {
			fmt.Printf("  %-14s %v\n", t.name, err)
			failed = fmt.Errorf("%s: %s was not measured", filepath.Base(model), t.name)
		}
	}
	fmt.Printf("  load average after: %s\n", loadAverage())
	return failed
}

// compareTest takes pairs until enough are undisturbed, and gives up after three times as many.
func (s *settings) compareTest(model string, t test) error {
	var kept []pair
	thrown := 0
	for len(kept) < s.pairs && thrown < 2*s.pairs {
		p, err := s.runPair(model, t)
		if err != nil {
			return err
		}
		if p.others <= maxOthers || s.any {
			kept = append(kept, p)
		} else {
			thrown++
		}
	}
	if len(kept) < s.pairs {
		return fmt.Errorf("only %d of %d pairs were undisturbed: other programs are running", len(kept), s.pairs)
	}
	fmt.Printf("  %-14s %s\n", t.name, summary(kept, thrown))
	return nil
}

func (s *settings) runPair(model string, t test) (pair, error) {
	out, a, err := measured(s.ours, t.ours(model, s.threads)...)
	if err != nil {
		return pair{}, err
	}
	var p pair
	if p.ours, err = readOurs(out); err != nil {
		return p, err
	}
	program, args := t.peer(model, s.threads)
	out, b, err := measured(filepath.Join(s.peer, program), args...)
	if err != nil {
		return p, err
	}
	p.others = max(a, b)
	p.peer, err = t.readPeer(out)
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

// summary shows the medians, the ratios of the pairs, and how busy the machine was.
func summary(pairs []pair, thrown int) string {
	ours, peer, ratios, others := column(pairs, func(p pair) float64 { return p.ours }), column(pairs, func(p pair) float64 { return p.peer }),
		column(pairs, func(p pair) float64 { return p.ours / p.peer }), column(pairs, func(p pair) float64 { return p.others })
	ratio := fmt.Sprintf("%.2f (%.2f to %.2f)", median(ratios), ratios[0], ratios[len(ratios)-1])
	return fmt.Sprintf("%10.2f %10.2f   %-38s %d kept, %d thrown away; up to %.1f %%", median(ours), median(peer), ratio,
		len(pairs), thrown, 100*others[len(others)-1])
}

// column returns a figure of all pairs, sorted.
func column(pairs []pair, f func(pair) float64) []float64 {
	var out []float64
	for _, p := range pairs {
		out = append(out, f(p))
	}
	slices.SortFunc(out, cmp.Compare[float64])
	return out
}

// median of values in order.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
