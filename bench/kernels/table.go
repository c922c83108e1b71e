package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway/spillway/internal/quant"
)

// results are the best figures of all rounds: of "decode/avx2/threads=1/Q4_0", by unit.
type results struct {
	cpu     string
	figures map[string]map[string]float64
	order   []string // names as they came
}

func newResults() *results { return &results{figures: map[string]map[string]float64{}} }

// benchLine is a line of `go test -bench`: the name, on several processors with their number, then figures and units.
var benchLine = regexp.MustCompile(`^BenchmarkTable/(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// add takes the output of one round.
func (r *results) add(out []byte) error {
	found := false
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if cpu, ok := strings.CutPrefix(line, "cpu: "); ok {
			r.cpu = strings.TrimSpace(cpu)
			continue
		}
		m := benchLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		found = true
		if err := r.line(m[1], strings.Fields(m[2])); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	if !found {
		return fmt.Errorf("no benchmark in %q", out)
	}
	return nil
}

func (r *results) line(name string, fields []string) error {
	if len(fields)%2 != 0 {
		return errors.New("a figure without its unit")
	}
	best := r.figures[name]
	if best == nil {
		best = map[string]float64{}
		r.figures[name] = best
		r.order = append(r.order, name)
	}
	for i := 0; i < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return err
		}
		if unit := fields[i+1]; !strings.HasSuffix(unit, "/op") { // of times the least would be the best
			best[unit] = max(best[unit], v)
		}
	}
	return nil
}

// part returns the values that names of a kind have at a place, in their order: the sets of "peak/…" at 1.
func (r *results) part(kind string, place int) (out []string) {
	for _, name := range r.order {
		if parts := strings.Split(name, "/"); parts[0] == kind && place < len(parts) && !slices.Contains(out, parts[place]) {
			out = append(out, parts[place])
		}
	}
	return out
}

var setNames = map[string]string{"avx2": "AVX2", "avx512": "AVX-512", "neon": "NEON", "go": "Go"}

// section writes limits and table.
func (r *results) section(note string) (string, error) {
	sets, threads, formats := r.part("peak", 1), r.part("read", 1), r.part("prefill", 2)
	if len(sets) == 0 || len(threads) == 0 || len(formats) == 0 {
		return "", fmt.Errorf("limits or formats are missing: the benchmarks have %s", strings.Join(slices.Sorted(maps.Keys(r.figures)), ", "))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n\n", r.processor(), note)
	for _, t := range threads {
		fmt.Fprintf(&b, "- memory, %s: %.1f GB/s read\n", threadText(t), r.figures["read/"+t]["MB/s"]/1e3)
	}
	for _, s := range sets {
		peak := r.figures["peak/"+s]
		fmt.Fprintf(&b, "- multiply-adds of %s, one thread: %.0f Gop/s on binary32, %.0f on 16-bit integers\n", setNames[s], peak["float-Gop/s"], peak["integer-Gop/s"])
	}
	header := []string{"format", "bits"}
	for _, t := range threads {
		for _, s := range sets {
			header = append(header, fmt.Sprintf("decode, %s, %s", threadText(t), setNames[s]))
		}
	}
	for _, s := range sets {
		header = append(header, "prefill, "+setNames[s])
	}
	fmt.Fprintf(&b, "\n| %s |\n|---%s|\n", strings.Join(header, " | "), strings.Repeat("|---:", len(header)-1))
	for _, f := range formats {
		cells, err := r.row(f, sets, threads)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String(), nil
}

func (r *results) processor() string {
	if r.cpu == "" {
		return "A processor without a name"
	}
	return r.cpu
}

func threadText(t string) string {
	n := strings.TrimPrefix(t, "threads=")
	if n == "1" {
		return "1 thread"
	}
	return n + " threads"
}

func (r *results) row(name string, sets, threads []string) ([]string, error) {
	t, ok := typeOf(name)
	if !ok {
		return nil, fmt.Errorf("%q is no number format", name)
	}
	cells := []string{name, fmt.Sprintf("%.5g", 8*float64(t.BlockBytes())/float64(t.BlockValues()))}
	for _, n := range threads {
		for _, s := range sets {
			gb := r.figures["decode/"+s+"/"+n+"/"+name]["MB/s"] / 1e3
			cells = append(cells, share(gb, r.figures["read/"+n]["MB/s"]/1e3, "%.1f"))
		}
	}
	for _, s := range sets {
		unit := "integer-Gop/s"
		if t.IsFloat() {
			unit = "float-Gop/s"
		}
		cells = append(cells, share(r.figures["prefill/"+s+"/"+name]["Gop/s"], r.figures["peak/"+s][unit], "%.0f"))
	}
	return cells, nil
}

// share writes a figure, and in brackets its part of the limit where that is known.
func share(v, limit float64, format string) string {
	switch {
	case v <= 0:
		return "–"
	case limit <= 0:
		return fmt.Sprintf(format, v)
	}
	return fmt.Sprintf(format+" (%.0f %%)", v, 100*v/limit)
}

// mostTypes is beyond every number format's number.
const mostTypes = 1 << 10

func typeOf(name string) (quant.Type, bool) {
	for t := quant.Type(0); t < mostTypes; t++ {
		if t.BlockValues() > 0 && t.String() == name {
			return t, true
		}
	}
	return 0, false
}

// accuracyTable checks what bench/accuracy printed and returns it.
func accuracyTable(out string) (string, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) < 3 {
		return "", fmt.Errorf("bench/accuracy printed %q, which is no table with a format", out)
	}
	for i, line := range lines {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 3 {
			return "", fmt.Errorf("bench/accuracy printed %q, which is no row of three", line)
		}
		if name := strings.TrimSpace(cells[0]); i >= 2 {
			if _, ok := typeOf(name); !ok || !strings.Contains(cells[1], "%") {
				return "", fmt.Errorf("bench/accuracy printed %q: not a format and its error", line)
			}
		}
	}
	return strings.Join(lines, "\n") + "\n", nil
}
