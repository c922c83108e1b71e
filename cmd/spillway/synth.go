package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/report"
	"github.com/spillway/spillway/internal/synth"
)

type synthCommand struct {
	Shape  string `arg:"" help:"A published shape, such as tinyllama-1.1b, llama-7b or qwen3-0.6b." placeholder:"SHAPE"`
	Type   string `required:"" help:"Number format: f16, bf16, f32, a block type of GGUF such as q8_0, or a mix such as q4_k_m." placeholder:"T"`
	Out    string `required:"" help:"GGUF file to write; a folder in Hugging Face layout if it ends in / or .safetensors." placeholder:"PATH"`
	Seed   uint64 `help:"The same seed gives the same bytes." default:"0"`
	Layers int    `help:"Layers. Default: the shape's." placeholder:"N"`
	Force  bool   `help:"Replace what is at PATH."`

	Zipf     float64 `help:"Of a mixture of experts: exponent of how busy experts are, the i-th busiest ∝ (i + head)^-S. Default: 0, uniform." placeholder:"S"`
	ZipfHead float64 `help:"Head of that law, in parts of all experts: flattens it for the busiest." placeholder:"H"`
	Locality float64 `help:"Probability that a token keeps an expert of the token before rather than draw one." placeholder:"L"`
}

func (*synthCommand) Help() string {
	names := make([]string, 0, 16)
	for _, s := range synth.Shapes() {
		names = append(names, s.Name)
	}
	return "Weights are random with healthy statistics, for measurements of speed and memory. --context sets the trained limit. " +
		"Which experts a mixture chooses is as good as random, or as uneven and as lasting as --zipf, --zipf-head and --locality say; " +
		"--zipf 6 --zipf-head 1 --locality 0.03 resembles a small model that was trained.\n\n" +
		"Shapes: " + strings.Join(names, ", ") + "\n\nTypes: " + strings.Join(synth.TypeNames(), ", ") + "\n\n" +
		"Example:\n\n  spillway synth tinyllama-1.1b --type q4_k_m --out /tmp/tiny.gguf"
}

// unused names the flags that mean nothing here.
func (*synthCommand) unused() []string { return []string{"memory", "exact", "kv", "policy"} }

func (c *synthCommand) run(s *session) error {
	ctx, stop := s.interruptible()
	defer stop()
	bar := s.newProgress("writing")
	defer bar.end()
	result, err := synth.Write(ctx, synth.Options{
		Shape: c.Shape, Type: c.Type, Path: c.Out, Seed: c.Seed, Layers: c.Layers, Context: s.flags.Context,
		Force: c.Force, Workers: s.flags.Threads,
		Progress: bar.set, Zipf: c.Zipf, ZipfHead: c.ZipfHead, Locality: c.Locality,
	})
	if err == nil {
		s.tellReplaced(result)
	}
	var usage synth.UsageError
	switch {
	case errors.As(err, &usage):
		return usageError{err}
	case err != nil:
		return s.interrupted(ctx, err)
	case s.flags.JSON:
		return s.printJSON(result)
	case !s.flags.Quiet:
		fmt.Fprintf(s.stderr, "%s: %s in %s, %s parameters, %s of weights\n", result.Path, result.Shape, result.Type,
			report.Count(result.Parameters), report.Bytes(result.Bytes))
	}
	return nil
}

// tellReplaced notes how much of the weights has another type than the one that was asked for.
func (s *session) tellReplaced(r synth.Result) {
	if len(r.Replaced) == 0 {
		return
	}
	total := int64(0)
	for _, n := range r.Replaced {
		total += n
	}
	s.tell(fmt.Sprintf("%.0f %% of the weights are in %s instead, as their rows are no whole blocks of what %s asks for",
		100*float64(total)/float64(r.Bytes), strings.Join(slices.Sorted(maps.Keys(r.Replaced)), ", "), r.Type))
}
