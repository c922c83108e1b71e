package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/vfs"
)

const (
	oracleGreedy = 24       // tokens that follow prompt 2
	maxOracle    = 64 << 20 // bytes of a case's expected.safetensors

	expectedName = "expected.safetensors"
)

// An oracle case is run in memory: the kit's models are tiny.
type oracle struct {
	m     *spillway.Model
	want  map[string]safetensors.Array
	found []safetensors.Array
}

// runOracle runs the prompts of a case and writes the tensors that its expected.safetensors has.
func (c *probeCommand) runOracle(ctx context.Context, s *session, o *opened, target *vfs.Target) error {
	f, err := vfs.OS().Open(filepath.Join(c.Oracle, expectedName))
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	want, err := safetensors.ReadAll(f, maxOracle)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	longest := 0
	for name, a := range want {
		if isPrompt(name) {
			longest = max(longest, len(a.Data)/8)
		}
	}
	m, err := s.startProbe(ctx, o, longest, oracleGreedy)
	if err != nil {
		return err
	}
	defer m.Close()
	run := &oracle{m: m, want: want}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if isPrompt(name) {
			if err := run.prompt(ctx, strings.TrimSuffix(name, ".ids")); err != nil {
				return err
			}
		}
	}
	return target.Write(func(w io.Writer) error { return safetensors.Write(w, run.found) })
}

func isPrompt(name string) bool {
	return strings.HasPrefix(name, "prompt.") && strings.HasSuffix(name, ".ids")
}

// prompt runs one prompt. The taps of the kit are of prompt 1, its greedy tokens of prompt 2.
func (r *oracle) prompt(ctx context.Context, name string) error {
	wide, err := r.want[name+".ids"].Ints()
	if err != nil {
		return &checkpoint.FormatError{Path: expectedName, Where: name, What: err.Error()}
	}
	ids := make([]int32, len(wide))
	for i, id := range wide {
		ids[i] = int32(id)
	}
	rows, greedy := collected{}, collected{}
	p := spillway.Probe{IDs: ids, Rows: func(_ int, row []float32) error { rows.add(1, len(row), row); return nil }}
	taps := map[string]*collected{}
	if name == "prompt.1" {
		p.Tap = func(tap string, n, width int, values []float32) {
			if taps[tap] == nil {
				taps[tap] = &collected{}
			}
			taps[tap].add(n, width, values)
		}
	}
	if _, ok := r.want["greedy.ids"]; ok && name == "prompt.2" {
		p.Greedy = oracleGreedy
		p.Logits = func(_ int, row []float32) { greedy.add(1, len(row), row) }
	}
	var added []int32
	var vector []float32
	if r.m.Embedding() {
		vector, err = r.m.EmbedProbe(ctx, p)
	} else {
		added, err = r.m.Probe(ctx, p)
	}
	if err != nil {
		return err
	}
	r.keep(name+".logits", rows)
	r.keep(name+".hidden", rows)
	if p.Greedy > 0 {
		r.found = append(r.found, safetensors.Int64s("greedy.ids", []int{len(added)}, widen(added)))
		r.keep("greedy.logits", greedy)
	}
	for _, tap := range slices.Sorted(maps.Keys(taps)) {
		r.keepTap(tap, *taps[tap])
	}
	if _, ok := r.want[name+".embedding"]; ok && vector != nil {
		r.found = append(r.found, safetensors.Float32s(name+".embedding", []int{len(vector)}, vector))
	}
	return nil
}

// keep adds a tensor if the case has it.
func (r *oracle) keep(name string, c collected) {
	if _, ok := r.want[name]; ok && c.rows > 0 {
		r.found = append(r.found, safetensors.Float32s(name, []int{c.rows, c.width}, c.values))
	}
}

// keepTap adds a tap under its name in transformers; where only the base model was saved, its
// modules have no prefix.
func (r *oracle) keepTap(tap string, c collected) {
	if layer, what, ok := routerTap(tap); ok {
		r.keepRouter("router.model."+layer+".mlp.experts."+what, what, c)
		return
	}
	path, ok := oracleTap(tap)
	if !ok {
		return
	}
	r.keep("tap.model."+path, c)
	r.keep("tap."+path, c)
}

// routerTap splits the name of a router's tap.
func routerTap(tap string) (layer, what string, ok bool) {
	at := strings.Index(tap, ".router.")
	if at < 0 {
		return "", "", false
	}
	return "layers." + strings.TrimPrefix(tap[:at], "layer."), tap[at+len(".router."):], true
}

// keepRouter adds which experts were chosen, as numbers, or their weights.
func (r *oracle) keepRouter(name, what string, c collected) {
	if _, ok := r.want[name]; !ok || what != "experts" {
		r.keep(name, c)
		return
	}
	ids := make([]int64, len(c.values))
	for i, v := range c.values {
		ids[i] = int64(v)
	}
	r.found = append(r.found, safetensors.Int64s(name, []int{c.rows, c.width}, ids))
}

// oracleTap gives the path of a tap's module in transformers.
func oracleTap(tap string) (string, bool) {
	switch tap {
	case "embed":
		return "embed_tokens", true
	case "final_norm":
		return "norm", true
	}
	layer, part, ok := strings.Cut(strings.TrimPrefix(tap, "layer."), ".")
	module, known := map[string]string{
		"attn_norm": ".input_layernorm", "attn_out": ".self_attn", "ffn_norm": ".post_attention_layernorm", "ffn_out": ".mlp", "out": "",
	}[part]
	return "layers." + layer + module, ok && known
}

// collected is rows of values.
type collected struct {
	rows, width int
	values      []float32
}

func (c *collected) add(rows, width int, values []float32) {
	c.rows, c.width = c.rows+rows, width
	c.values = append(c.values, values[:rows*width]...)
}

func widen(ids []int32) []int64 {
	out := make([]int64, len(ids))
	for i, id := range ids {
		out[i] = int64(id)
	}
	return out
}
