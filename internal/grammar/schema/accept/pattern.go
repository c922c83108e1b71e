package accept

import (
	"errors"

	"github.com/spillway/spillway/internal/grammar/regular"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// A pattern is a regular expression that matches somewhere: an automaton, or, where that is too large, what
// finds its states as they are needed.
type pattern struct {
	automaton *regular.DFA
	lazy      *regular.Pattern
}

// pattern reads a regular expression once.
func (c *compiler) pattern(s *schema.Schema, keyword, text string) (*pattern, error) {
	if p := c.patterns[text]; p != nil {
		return p, nil
	}
	d, err := c.build.Regexp(text, true)
	p := &pattern{automaton: d}
	var limit *regular.LimitError
	if errors.As(err, &limit) && (limit.Limit == "states" || limit.Limit == "bytes") {
		p.lazy, err = c.build.Pattern(text, true)
	}
	if err != nil {
		return nil, refused(s, keyword, err)
	}
	c.patterns[text] = p
	return p, nil
}

// A runKey is a schema that follows a string, or none for the names that a pattern of an object is about.
type runKey struct {
	pattern *pattern
	node    *node
}

// run gives the run of a lazy pattern. Strings come one after the other, so that a schema needs one.
func (c *Checker) run(p *pattern, n *node) *regular.Run {
	key := runKey{p, n}
	r := c.runs[key]
	if r == nil {
		r = p.lazy.Run()
		if c.runs == nil {
			c.runs = map[runKey]*regular.Run{}
		}
		c.runs[key] = r
	}
	return r
}

// match says whether a whole text matches.
func (c *Checker) match(p *pattern, text string) bool {
	if p.lazy != nil {
		return c.run(p, nil).Match(text)
	}
	return p.automaton.Match(text)
}
