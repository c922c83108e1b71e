// Command kernels writes the measured parts of docs/kernels.md: it runs the benchmark Table of internal/kernel some times and
// keeps the best figure of each line, or bench/accuracy. bench/kernels.sh builds what it needs.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

type settings struct {
	doc           string
	bench         string // the compiled tests of internal/kernel
	rounds        int
	each          time.Duration
	accuracy      string // the binary of bench/accuracy
	accuracyFlags []string
	peerVersion   string
}

func main() {
	var s settings
	var flags string
	flag.StringVar(&s.doc, "doc", "docs/kernels.md", "the page to write into")
	flag.StringVar(&s.bench, "bench", "", "the compiled tests of internal/kernel; empty: no speeds")
	flag.IntVar(&s.rounds, "rounds", 3, "how often everything runs; the best counts")
	flag.DurationVar(&s.each, "each", 60*time.Millisecond, "how long each benchmark runs")
	flag.StringVar(&s.accuracy, "accuracy", "", "the binary of bench/accuracy; empty: no errors")
	flag.StringVar(&flags, "accuracy-flags", "", "its flags and its model, one a line")
	flag.StringVar(&s.peerVersion, "peer-version", "", "what llama.cpp that is")
	flag.Parse()
	s.accuracyFlags = strings.FieldsFunc(flags, func(r rune) bool { return r == '\n' })
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func (s *settings) run() error {
	if s.bench == "" && s.accuracy == "" {
		return errors.New("nothing to do: give -bench, -accuracy or both")
	}
	if s.bench != "" {
		text, err := s.speeds()
		if err == nil {
			err = replaceIn(s.doc, "speed", text)
		}
		if err != nil {
			return err
		}
	}
	if s.accuracy == "" {
		return nil
	}
	text, err := s.errors()
	if err != nil {
		return err
	}
	return replaceIn(s.doc, "accuracy", text)
}

// speeds runs the benchmarks and returns the section.
func (s *settings) speeds() (string, error) {
	all, load := newResults(), loadAverage()
	for i := range s.rounds {
		fmt.Fprintf(os.Stderr, "speeds: round %d of %d\n", i+1, s.rounds)
		cmd := exec.Command(s.bench, "-test.run", "^$", "-test.bench", "^BenchmarkTable$", "-test.benchtime", s.each.String(), "-test.timeout", "10m")
		cmd.Dir, cmd.Stderr = filepath.Dir(s.bench), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("the benchmarks: %w\n%s", err, out)
		}
		if err := all.add(out); err != nil {
			return "", err
		}
	}
	note := fmt.Sprintf("%s; the best of %d rounds of %v each; load average before: %s.", time.Now().UTC().Format(time.DateOnly), s.rounds, s.each, load)
	return all.section(note)
}

// errors runs bench/accuracy and returns the section.
func (s *settings) errors() (string, error) {
	cmd := exec.Command(s.accuracy, s.accuracyFlags...)
	cmd.Stderr = os.Stderr
	fmt.Fprintln(os.Stderr, "accuracy: some seconds for each format")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("bench/accuracy: %w", err)
	}
	table, err := accuracyTable(string(out))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, beside %s.\n\n%s", time.Now().UTC().Format(time.DateOnly), cmp.Or(s.peerVersion, "no other program"), table), nil
}

func replaceIn(path, name, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err := replaceSection(string(old), name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

// replaceSection puts text between the comments that name a section.
func replaceSection(page, name, text string) (string, error) {
	begin, end := "<!-- "+name+": bench/kernels.sh -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return "", fmt.Errorf("there is no section between %q and %q", begin, end)
	}
	return before + begin + text + end + after, nil
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := bytes.Fields(text); err == nil && len(fields) > 0 {
		return string(fields[0])
	}
	return "unknown"
}
