package engine

// Constraint says which tokens an answer may have, one after another. One answer at a time uses it, from one
// goroutine at a time.
type Constraint interface {
	// Mask writes which tokens may come next, bit id%64 of mask[id/64] for each, ends of the answer among
	// them; false, with mask as it was: all may.
	Mask(mask []uint64) bool
	// Accept goes on by a token. An error says that it may not come.
	Accept(id int32) error
	// Forced returns the token that is the only one that may come next, if there is one and it is no end.
	Forced() (id int32, ok bool)
	// Rollback takes back the last n accepted tokens.
	Rollback(n int)
	// MayEnd reports whether the answer is complete as it is.
	MayEnd() bool
}
