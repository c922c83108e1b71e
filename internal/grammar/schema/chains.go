package schema

// checkChains refuses schemas that apply to their own value again before anything of it was read.
func checkChains(d *Document) error {
	c := &chains{depth: make([]int, len(d.Schemas))}
	for _, s := range d.Schemas {
		if _, err := c.visit(s, 0); err != nil {
			return err
		}
	}
	return nil
}

// chains holds the length of the longest chain from each schema; 0 is unknown, -1 is being computed.
type chains struct{ depth []int }

func (c *chains) visit(s *Schema, above int) (int, error) {
	switch {
	case c.depth[s.ID] > 0:
		return c.depth[s.ID], nil
	case c.depth[s.ID] < 0:
		return 0, &Error{Invalid, "$ref", s.Where, "leads back to itself without reading anything in between"}
	case above > maxChain:
		return 0, &Error{Limit, "$ref", s.Where, "the chain of references and combinations is too long"}
	}
	c.depth[s.ID] = -1
	longest := 0
	var failed error
	s.InPlace(func(t *Schema) {
		if failed != nil {
			return
		}
		n, err := c.visit(t, above+1)
		longest, failed = max(longest, n), err
	})
	if failed != nil {
		return 0, failed
	}
	if longest >= maxChain {
		return 0, &Error{Limit, "$ref", s.Where, "the chain of references and combinations is too long"}
	}
	c.depth[s.ID] = longest + 1
	return longest + 1, nil
}
