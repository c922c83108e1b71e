package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/report"
)

// A setting is what must not change a result.
type setting struct {
	budget  float64 // 0: the least; 1: --memory; between: that part of the weights more than the least
	threads int
	chunk   int
	batch   int
	cpu     string
}

// identityRow is a line of the table.
type identityRow struct {
	Budget   int64  `json:"budget"`
	Threads  int    `json:"threads"`
	Chunk    int    `json:"chunk"`
	Batch    int    `json:"batch"`
	CPU      string `json:"cpu"`
	Streamed int64  `json:"streamed_bytes"`
	SHA256   string `json:"sha256"` // of all logits
}

// identityTable is what `spillway verify --identity --json` prints.
type identityTable struct {
	Same bool          `json:"same"`
	Rows []identityRow `json:"rows"`
}

const (
	identityGreedy  = 6  // tokens that follow each prompt
	identityContext = 64 // tokens
)

// identityPrompts are the lengths of the prompts.
var identityPrompts = []int{33, 9, 2}

// settings returns the rows of the table: first everything in memory on one thread, then each
// setting alone and together with others.
// The first rows take the instruction set in use, which SPILLWAY_CPU chooses.
func identitySettings() []setting {
	best := kernel.ISA()
	rows := []setting{
		{1, 1, 512, 1, best},
		{1, 2, 512, 3, best},
		{1, 4, 5, 1, best},
		{0.3, 1, 16, 3, best},
		{0.3, 3, 512, 1, best},
		{0, 2, 512, 3, best},
		{0, 4, 1, 1, best},
		{0, 1, 7, 2, best},
	}
	for _, isa := range kernel.ISAs() {
		if isa != best {
			rows = append(rows, setting{0, 2, 512, 3, isa})
		}
	}
	return rows
}

// proveIdentity runs the same requests under every setting and compares the digests of the logits.
func proveIdentity(ctx context.Context, s *session, model string) (err error) {
	path, err := s.resolve(model)
	if err != nil {
		return err
	}
	before := kernel.ISA()
	defer func() { err = errors.Join(err, kernel.Use(before)) }()
	table := identityTable{Same: true}
	settings := identitySettings()
	if err := s.identityFits(ctx, path, settings); err != nil {
		return err
	}
	line := func(format string, args ...any) error {
		if s.flags.JSON {
			return nil
		}
		_, err := fmt.Fprintf(s.stdout, format+"\n", args...)
		return err
	}
	if err := line("%-12s %7s %5s %5s %-6s %14s  %s", "budget", "threads", "chunk", "batch", "cpu", "read in sweeps", "sha256 of all logits"); err != nil {
		return err
	}
	for _, x := range settings {
		row, err := s.identityRow(ctx, path, x)
		if err != nil {
			return err
		}
		table.Rows = append(table.Rows, row)
		table.Same = table.Same && row.SHA256 == table.Rows[0].SHA256
		if err := line("%-12s %7d %5d %5d %-6s %14s  %s", report.Bytes(row.Budget), row.Threads, row.Chunk, row.Batch, row.CPU,
			report.Bytes(row.Streamed), row.SHA256); err != nil {
			return err
		}
		debug.FreeOSMemory() // what this row needed is not the next one's
	}
	if s.flags.JSON {
		if err := s.printJSON(table); err != nil {
			return err
		}
	}
	if !table.Same {
		return errors.New("the results differ: this is a fault of spillway, please report it with the table")
	}
	return nil
}

// options are those that a row's model is started with.
func (x setting) options() spillway.ModelOptions {
	return spillway.ModelOptions{Context: identityContext, Sequences: x.batch, HeadRows: max(x.batch, 4), Chunk: x.chunk}
}

// identityFits plans all rows before the first one runs: a refusal names the memory that does for
// every one of them.
func (s *session) identityFits(ctx context.Context, path modelPath, settings []setting) error {
	var largest *spillway.TooSmallError
	for _, x := range settings {
		if err := kernel.Use(x.cpu); err != nil {
			return err
		}
		t := *s
		t.flags.Threads, t.flags.Verbose = x.threads, false
		o, err := t.open(ctx, path)
		if err != nil {
			return err
		}
		options := x.options()
		options.Exact, options.KV = s.flags.Exact, s.flags.KV
		_, err = o.Plan(options)
		var small *spillway.TooSmallError
		switch err = o.close(err); {
		case errors.As(err, &small):
			if largest == nil || small.Least > largest.Least {
				largest = small
			}
		case err != nil:
			return err
		}
		debug.FreeOSMemory()
	}
	if largest == nil {
		return nil
	}
	refusal := *largest
	refusal.Least += identityDrift
	return &refusal
}

// identityDrift is what the process may come to hold from row to row.
const identityDrift = 2 << 20

// identityRow runs one setting in a runtime of its own.
func (s *session) identityRow(ctx context.Context, path modelPath, x setting) (row identityRow, err error) {
	if err := kernel.Use(x.cpu); err != nil {
		return row, err
	}
	t := *s
	t.flags.Threads, t.flags.Verbose = x.threads, false
	m, o, err := t.startAt(ctx, path, x.budget, x.options())
	if err != nil {
		return row, err
	}
	sum, err := digestLogits(ctx, m, x.batch)
	row = identityRow{
		Budget: o.rt.Memory(), Threads: x.threads, Chunk: x.chunk, Batch: x.batch, CPU: x.cpu,
		Streamed: m.IO().Streamed(), SHA256: sum,
	}
	return row, errors.Join(err, o.close(m.Close()))
}

// startAt starts a model with a part of the memory between the least that works and what holds all
// of it, or --memory if that is less. The least depends on the state of this process a little, so
// that it is asked for until it holds.
func (s *session) startAt(ctx context.Context, path modelPath, part float64, options spillway.ModelOptions) (*spillway.Model, *opened, error) {
	most := s.flags.Memory
	defer func() { s.flags.Memory = most }()
	var tooSmall *spillway.TooSmallError
	extra := int64(0)
	for range 4 {
		o, err := s.open(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		if s.flags.Memory == most && part < 1 {
			// The refusal of an impossible budget tells the least.
			extra = min(o.rt.Memory(), o.Catalog().Bytes())
			if err := o.close(nil); err != nil {
				return nil, nil, err
			}
			s.flags.Memory = "1MiB"
			continue
		}
		m, err := s.start(ctx, o, options)
		if err == nil {
			return m, o, nil
		}
		err = o.close(err)
		if !errors.As(err, &tooSmall) || s.flags.Memory == most {
			return nil, nil, err
		}
		s.flags.Memory = fmt.Sprint(tooSmall.Least + int64(part*float64(extra)))
	}
	return nil, nil, tooSmall
}

// digestLogits runs the prompts, batch of them at a time, and digests every logit of the prompts and
// of the answers.
func digestLogits(ctx context.Context, m *spillway.Model, batch int) (string, error) {
	sums := make([][]byte, len(identityPrompts))
	errs := make([]error, len(identityPrompts))
	slots := make(chan struct{}, batch)
	var group sync.WaitGroup
	for i, n := range identityPrompts {
		slots <- struct{}{}
		group.Go(func() {
			sums[i], errs[i] = digestOne(ctx, m, identityIDs(i, n, m.Layout().Vocab))
			<-slots
		})
	}
	group.Wait()
	all := sha256.New()
	for _, sum := range sums {
		all.Write(sum)
	}
	return hex.EncodeToString(all.Sum(nil)), errors.Join(errs...)
}

func digestOne(ctx context.Context, m *spillway.Model, ids []int32) ([]byte, error) {
	h := sha256.New()
	p := spillway.Probe{IDs: ids, Rows: func(_ int, values []float32) error {
		h.Write(mem.FromFloat32s(values))
		return nil
	}}
	if !m.Embedding() {
		p.Greedy = identityGreedy
		p.Logits = func(_ int, logits []float32) { h.Write(mem.FromFloat32s(logits)) }
	}
	_, err := m.Probe(ctx, p)
	return h.Sum(nil), err
}

// identityIDs are tokens without meaning, spread over the vocabulary.
func identityIDs(prompt, n, vocab int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((7919*(i+1) + 104729*prompt) % vocab)
	}
	return ids
}
