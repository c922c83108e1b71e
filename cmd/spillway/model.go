package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/policy"
	"github.com/spillway/spillway/internal/report"
)

// An opened model: a runtime with the budget of --memory, and the description of one model in it.
type opened struct {
	*spillway.Checkpoint
	rt *spillway.Runtime

	template string // what --chat-template chose
}

// open makes a runtime and reads what the model says about itself.
func (s *session) open(ctx context.Context, path modelPath) (*opened, error) {
	rt, err := s.runtime()
	if err != nil {
		return nil, err
	}
	var c *spillway.Checkpoint
	if path == "" {
		c, err = rt.LoadEmbedded(ctx)
	} else {
		c, err = rt.Load(ctx, string(path))
	}
	if err != nil {
		return nil, errors.Join(err, rt.Close())
	}
	s.tellDirect(c.Catalog())
	return &opened{Checkpoint: c, rt: rt}, nil
}

// tellDirect says once why reads go through the page cache, if they do.
func (s *session) tellDirect(cat *checkpoint.Catalog) {
	for _, f := range cat.Files {
		if why := f.Why(); why != "" {
			s.tell(why)
			return
		}
	}
}

// tell prints a note on stderr, the same one only once.
func (s *session) tell(note string) {
	if s.flags.Quiet || s.told[note] {
		return
	}
	if s.told == nil {
		s.told = map[string]bool{}
	}
	s.told[note] = true
	fmt.Fprintf(s.stderr, "note: %s\n", note)
}

// tellTrained notes a context beyond what the model was trained for.
func (s *session) tellTrained(o *opened, n int) {
	if most := o.Layout().Context; most > 0 && n > most {
		s.tell(fmt.Sprintf("the context of %d tokens is longer than the %d that the model was trained for: what lies beyond may make little sense", n, most))
	}
}

// shorter adds to a refusal for want of memory that a flag asks for a lot.
func shorter(err error, flag string, tokens int) error {
	if tokens <= spillway.DefaultMaxTokens || !noRoom(err) {
		return err
	}
	return fmt.Errorf("%w; a lower --%s than %d needs less", err, flag, tokens)
}

// openNamed is open for a MODEL argument.
func (s *session) openNamed(ctx context.Context, model string) (*opened, error) {
	path, err := s.resolve(model)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, path)
}

// runtime makes the runtime that --memory and --threads ask for.
func (s *session) runtime() (*spillway.Runtime, error) {
	memory, err := machine.ReadMemory()
	if err != nil && s.flags.Memory == "auto" {
		return nil, fmt.Errorf("--memory auto: %w: give a size", err)
	}
	limit, err := budget.ParseLimit(s.flags.Memory, memory)
	if err == nil {
		err = checkUnit(s.flags.Memory, limit)
	}
	if err != nil {
		return nil, usagef("--memory: %s%s", strings.TrimPrefix(err.Error(), "memory: "), s.origins.of("memory"))
	}
	if s.flags.Verbose {
		fmt.Fprintf(s.stderr, "memory: cap %s (--memory %s)\n", report.Bytes(limit), s.flags.Memory)
	}
	return spillway.New(spillway.Options{Memory: limit, Threads: s.flags.Threads})
}

// checkUnit refuses a number without a unit that nobody means as bytes.
func checkUnit(text string, limit int64) error {
	text = strings.TrimSpace(text)
	if _, err := strconv.ParseFloat(text, 64); err != nil || limit >= machine.MiB {
		return nil
	}
	return fmt.Errorf("%s without a unit are bytes, which is too little; %[1]sMiB or %[1]sGiB would do", text)
}

// borrow leases memory for a command that runs no model.
func (s *session) borrow(n int, what string) (memory []byte, free func() error, err error) {
	rt, err := s.runtime()
	if err != nil {
		return nil, nil, err
	}
	release, err := rt.Reserve(int64(n), what)
	if err != nil {
		return nil, nil, errors.Join(enough(err, int64(n), what), rt.Close())
	}
	buf, err := mem.New(budget.New(int64(mem.Round(n))), budget.Staging, n, what)
	if err != nil {
		release()
		return nil, nil, errors.Join(err, rt.Close())
	}
	return buf.Bytes(), func() error {
		err := buf.Free()
		release()
		return errors.Join(err, rt.Close())
	}, nil
}

// close ends the model and its runtime; err is what happened before.
func (o *opened) close(err error) error {
	return errors.Join(err, o.Checkpoint.Close(), o.rt.Close())
}

// start makes the model ready to answer in a context of that many tokens.
func (s *session) start(ctx context.Context, o *opened, options spillway.ModelOptions) (*spillway.Model, error) {
	options.Exact, options.KV = s.flags.Exact, s.flags.KV
	release, err := s.usePolicy(ctx, o, &options)
	if err != nil {
		return nil, err
	}
	defer release()
	return o.Start(ctx, options)
}

// usePolicy sets what --policy says. The trace is released again; how busy experts were is kept.
func (s *session) usePolicy(ctx context.Context, o *opened, options *spillway.ModelOptions) (release func(), err error) {
	name, file := s.flags.policyName()
	experts := o.Layout().Experts
	options.Policy = name
	if name != "static" || len(experts) == 0 {
		return func() {}, nil
	}
	loads := traceLoads{ctx: ctx, rt: o.rt}
	shape := policy.Shape{Layers: len(experts), Experts: experts[0].Count()}
	if options.Profile, err = loads.profile(file, shape, "--policy"); err != nil {
		loads.release()
		return nil, err
	}
	return loads.release, nil
}
