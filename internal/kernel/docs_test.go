package kernel

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/quant"
)

var writeDocs = flag.Bool("docs", false, "write the list of formats in docs/kernels.md anew: the columns of this processor's instruction sets")

// docSet is a column of the list: an instruction set, and the one whose loops it may take.
type docSet struct {
	name     string
	ops      *matmulOps
	base     *matmulOps
	baseName string
}

const (
	formatsBegin = "<!-- formats: go test ./internal/kernel -run TestKernelsDoc -docs -->\n"
	formatsEnd   = "<!-- end of formats -->\n"
)

var formatsHeader = []string{"format", "bits per weight", "run", "AVX2", "AVX-512", "NEON"}

// TestKernelsDoc compares the list of formats in docs/kernels.md with the tables of the code.
func TestKernelsDoc(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "kernels.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), "\r\n", "\n")
	before, rest, ok := strings.Cut(text, formatsBegin)
	section, after, ended := strings.Cut(rest, formatsEnd)
	if !ok || !ended {
		t.Fatalf("%s has no list between %q and %q", path, formatsBegin, formatsEnd)
	}
	want := formatsSection(section)
	if *writeDocs {
		if err := os.WriteFile(path, []byte(before+formatsBegin+want+formatsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if section != want {
		t.Errorf("%s has another list of formats than the code (the test's flag -docs writes it):\n%s", path, changedLines(section, want))
	}
}

func changedLines(got, want string) string {
	var out []string
	lines := strings.Split(got, "\n")
	for _, line := range strings.Split(want, "\n") {
		if !slices.Contains(lines, line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// formatsSection writes the list. The columns of sets that other processors have stay what old says.
func formatsSection(old string) string {
	known := map[string][]string{}
	for line := range strings.SplitSeq(old, "\n") {
		if cells := tableCells(line); len(cells) == len(formatsHeader) {
			known[cells[0]] = cells
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|---|---:|---:|---|---|---|\n", strings.Join(formatsHeader, " | "))
	for _, t := range productTypes() {
		cells := make([]string, len(formatsHeader))
		copy(cells, known[t.String()])
		cells[0], cells[1], cells[2] = t.String(), fmt.Sprintf("%.5g", 8*float64(t.BlockBytes())/float64(t.BlockValues())), "–"
		if f := intFormats[t]; f != nil {
			cells[2] = fmt.Sprint(f.run)
		}
		for _, set := range docSets() {
			cells[slices.Index(formatsHeader, set.name)] = set.loops(t)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

func tableCells(line string) []string {
	var cells []string
	for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

// loops says what runs for one row, and what fills panels.
func (s docSet) loops(t quant.Type) string {
	var rows, panels string
	if t.IsFloat() {
		rows, panels = loopIn(s, t, floatRowsOf), loopIn(s, t, decodeOf)
	} else {
		rows, panels = loopIn(s, t, intRowsOf), loopIn(s, t, unpackOf)
	}
	if p := s.ops.pieces; p != nil && (p.unpack[t] != nil || p.decode[t] != nil) {
		panels = "yes"
	}
	if rows == "Go" && panels != "Go" {
		rows = "panels"
	}
	return rows + ", " + panels
}

// loopIn says whether the set has the loop itself ("yes"), or whose it takes.
func loopIn[F any](s docSet, t quant.Type, pick func(m *matmulOps) map[quant.Type]F) string {
	whose := "yes"
	for m := s.ops; m != nil; m = m.base {
		if m == s.base {
			whose = s.baseName
		}
		if _, ok := pick(m)[t]; ok {
			return whose
		}
	}
	return "Go"
}

// The list is checked where there are instruction sets to check.
func TestKernelsDocSets(t *testing.T) {
	want := map[string]int{"amd64": 2, "arm64": 1}[runtime.GOARCH]
	if got := len(docSets()); got != want {
		t.Errorf("%d columns are checked, want %d", got, want)
	}
	for _, set := range docSets() {
		if !slices.Contains(formatsHeader, set.name) {
			t.Errorf("the list has no column %s", set.name)
		}
		if got := set.loops(quant.Q4_K); got != "yes, yes" {
			t.Errorf("%s has loops for Q4_K: %s", set.name, got)
		}
	}
}
