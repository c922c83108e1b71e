package main

import (
	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/vfs"
)

// traceOutput is the file of --trace. It gets its name when the run has ended: one that does not start leaves what is there.
type traceOutput struct{ *vfs.Draft }

// Close is part of io.Closer.
func (t *traceOutput) Close() error { return t.Commit() }

// traceOutput begins the file of --trace, which must be none that is read; nil without one.
func (c *runCommand) traceOutput(s *session, o *opened) (*traceOutput, error) {
	if c.Trace == "" {
		return nil, nil
	}
	if len(o.Layout().Experts) == 0 {
		return nil, usagef("--trace: %v", spillway.ErrNoExperts)
	}
	t, err := vfs.Aim(c.Trace)
	if err != nil {
		return nil, err
	}
	var inputs []string
	for _, f := range o.Catalog().Files {
		inputs = append(inputs, f.Path)
	}
	if _, profile := s.flags.policyName(); profile != "" {
		inputs = append(inputs, profile)
	}
	if same, ok := t.Same(inputs...); ok {
		return nil, usagef("the trace %s would replace %s, which is read; another name would do", visible(c.Trace, 200), visible(same, 200))
	}
	d, err := t.Create()
	if err != nil {
		return nil, err
	}
	return &traceOutput{d}, nil
}
