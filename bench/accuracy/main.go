// Command accuracy measures what the integer path costs: SmolLM2's own weights in each block format, logits of a
// text by the integer path and by llama.cpp beside those of the exact path on the same file. It prints the table of
// docs/kernels.md.
//
// The released model's rows have 576 values, which blocks of 256 do not divide: it is widened to 768 by values that
// stay 0 (widen.go).
package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// ids are "The quick brown fox jumps over the lazy dog. In physics, energy is conserved. A man walked into": a text, since
// random ids give activations that no text gives.
const ids = "504,2365,6354,16438,27003,690,260,23790,2767,30,533,6944,28,1439,314,26842,30,330,555,13197,618"

func main() {
	ours := flag.String("ours", "spillway", "the spillway binary")
	peer := flag.String("peer", "", "llama-logits; without it the peer's column stays empty")
	dir := flag.String("dir", os.TempDir(), "where a file of up to 600 MB is made")
	types := flag.String("types", "", "formats, separated by commas; default: all block formats")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: accuracy [flags] SmolLM2-135M.gguf")
		os.Exit(2)
	}
	r := runner{ours: *ours, peer: *peer, dir: *dir}
	if err := r.all(flag.Arg(0), *types); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

type runner struct{ ours, peer, dir string }

func (r runner) all(path, names string) error {
	tensors, meta, err := readWide(path)
	if err != nil {
		return err
	}
	fmt.Println("| format | integer path | llama.cpp |\n|---|---:|---:|")
	for _, t := range formats() {
		if name := strings.ToLower(t.String()); names != "" && !slices.Contains(strings.Split(names, ","), name) {
			continue
		}
		file := filepath.Join(r.dir, "accuracy.gguf")
		if err := write(file, t, tensors, meta); err != nil {
			return err
		}
		line, err := r.row(file)
		os.Remove(file)
		if err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
		fmt.Printf("| %v | %s |\n", t, line)
	}
	return nil
}

// formats are the block formats that can be written.
func formats() (out []quant.Type) {
	for t := quant.Type(0); t < 256; t++ {
		if _, ok := quant.Lookup(t); ok && !t.IsFloat() && quant.CanEncode(t) {
			out = append(out, t)
		}
	}
	return out
}

func (r runner) row(file string) (string, error) {
	exact, err := r.probe(file, "--exact")
	if err != nil {
		return "", err
	}
	integer, err := r.probe(file, "--kv", "f32")
	if err != nil {
		return "", err
	}
	line := percent(integer, exact)
	if r.peer == "" {
		return line + " |", nil
	}
	theirs, err := r.logits(file)
	if err != nil {
		return line + " | does not run", nil
	}
	return line + " | " + percent(theirs, exact), nil
}

// probe returns our logits of all positions.
func (r runner) probe(file string, flags ...string) ([]float32, error) {
	out := filepath.Join(r.dir, "accuracy.safetensors")
	defer os.Remove(out)
	cmd := exec.Command(r.ours, append([]string{"probe", file, "--ids", ids, "--out", out, "--quiet"}, flags...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	f, err := vfs.OS().Open(out)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	arrays, err := safetensors.ReadAll(f, 1<<30)
	if err != nil {
		return nil, err
	}
	return floats(arrays["logits"].Data), nil
}

func (r runner) logits(file string) ([]float32, error) {
	out, err := exec.Command(r.peer, "logits", file, ids).Output()
	if err != nil {
		return nil, err
	}
	return floats(out), nil
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	binary.Read(bytes.NewReader(b), binary.LittleEndian, out)
	return out
}

// percent is the error of a row of logits relative to its length, the largest and the median over the rows.
func percent(got, want []float32) string {
	if len(got) != len(want) || len(want)%vocab != 0 {
		return fmt.Sprintf("%d values, want %d", len(got), len(want))
	}
	var errs []float64
	for i := 0; i < len(want); i += vocab {
		var d, n float64
		for k := i; k < i+vocab; k++ {
			e := float64(got[k]) - float64(want[k])
			d, n = d+e*e, n+float64(want[k])*float64(want[k])
		}
		errs = append(errs, 100*math.Sqrt(d/n))
	}
	slices.Sort(errs)
	return fmt.Sprintf("%.3f %% (%.3f)", errs[len(errs)/2], errs[len(errs)-1])
}
