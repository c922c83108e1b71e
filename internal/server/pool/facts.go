package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/tokenizer"
)

// Facts are what is known of a model without loading it.
type Facts struct {
	Name       string
	Family     string
	Parameters int64
	Bytes      int64 // of its tensors
	Format     string
	Type       string // of most weights, such as Q4_K
	Context    int    // tokens, as it was trained
	Hidden     int    // length of its embeddings
	Template   string // chat template, as text; empty without one
	Tools      bool   // its template and dialect know tools
	Reasoning  bool
	Embedding  bool // it gives vectors instead of text
	Embedded   bool
	Path       string
	Modified   time.Time // of its file; of the program's start if it is embedded
	Identity   string    // digest over the headers of its files
}

// State is a model's part in the pool now.
type State struct {
	Facts
	Loaded  bool
	Users   int       // requests that hold it or wait for it
	Failed  int64     // tries to read its weights, in all
	Loads   int       // times that it was loaded, or tried to be
	Expires time.Time // zero: it stays until its memory is needed, or is in use
	Model   *spillway.Model
	// Of a loaded model: the bytes of its longest token, 0 without a tokenizer, and its context in tokens.
	LongestToken, Limit int
	Drive               uint64 // that a loaded model's files lie on, as spillway.Checkpoint.Drive has it
}

// List returns the state of all models. A State's Model may be closed at any time: only what answers
// ErrClosed then, or needs no model, may be asked of it.
func (p *Pool) List() []State {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]State, len(p.entries))
	for i, e := range p.entries {
		all[i] = e.state()
	}
	return all
}

// Find returns the state of a model.
func (p *Pool) Find(name string) (State, error) {
	e := p.find(name)
	if e == nil {
		return State{}, &UnknownError{name, p.Names()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return e.state(), nil
}

func (e *entry) state() State {
	s := State{Facts: e.Facts, Loaded: e.model != nil, Users: e.users, Failed: e.health.failed, Loads: e.tries, Model: e.model}
	if e.model == nil {
		return s
	}
	s.LongestToken, s.Limit, s.Drive = e.longest, e.model.Options().Context, e.drive
	if e.users == 0 && e.keep >= 0 {
		s.Expires = e.since.Add(e.keep)
	}
	return s
}

// look reads a model's facts, and plans its start if it is to be tried.
func (p *Pool) look(ctx context.Context, s Spec, try bool) (Facts, error) {
	c, err := p.checkpoint(ctx, s.Path)
	if err != nil {
		return Facts{}, err
	}
	f := factsOf(c, s)
	f.Identity, err = c.Catalog().Identity(ctx)
	if err == nil && try {
		err = p.try(c, f.Name)
	}
	return f, errors.Join(err, c.Close())
}

// try returns the error that loading a model would end with for want of room, or for what Prepare says.
func (p *Pool) try(c *spillway.Checkpoint, name string) error {
	if p.options.Prepare != nil {
		if err := p.options.Prepare(c); err != nil {
			return err
		}
	}
	if _, err := fitting(c, p.options.Model); err != nil {
		return fmt.Errorf("loading the model %s: %w", name, err)
	}
	return nil
}

func factsOf(c *spillway.Checkpoint, s Spec) Facts {
	l, d := c.Layout(), c.Dialects()
	f := Facts{
		Name: s.Name, Family: l.Family, Parameters: l.Parameters, Bytes: c.Catalog().Bytes(), Format: c.Catalog().Format,
		Context: l.Context, Hidden: l.Hidden, Tools: d.Tool != "", Reasoning: d.Reasoning != "",
		Embedding: c.Embedding(), Embedded: c.Embedded(), Path: s.Path, Modified: time.Now(),
	}
	if f.Name == "" {
		f.Name = c.Name()
	}
	sums := map[string]int64{}
	for _, t := range c.Catalog().Tensors {
		if sums[t.DType] += t.Bytes; sums[t.DType] > sums[f.Type] {
			f.Type = t.DType
		}
	}
	if info, err := os.Stat(s.Path); err == nil {
		f.Modified = info.ModTime()
	}
	return f
}

// longestToken is the most bytes of text that one token stands for.
func longestToken(m *spillway.Model) int {
	tok, err := m.Tokenizer()
	if err != nil {
		return 0
	}
	return longestOf(tok)
}

func longestOf(tok *tokenizer.Tokenizer) int {
	longest := 1
	for id := range tok.Size() {
		longest = max(longest, len(tok.Token(int32(id))))
	}
	return longest
}
