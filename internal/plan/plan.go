// Package plan decides what goes where before anything is allocated: the least memory that works,
// how much of each pool, which weights are pinned and which are streamed, and how fast it will be.
// It is arithmetic alone: the same request gives the same plan.
package plan

import (
	"fmt"
	"strings"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/machine"
)

// Request is what to plan for. Sizes are in bytes.
type Request struct {
	Model   *layout.Model
	Budget  int64 // the cap for the whole process
	Runtime int64 // Go heap, stacks, the binary, the tokenizer, as measured; page tables come on top

	Start int64 // what the process took before it could plan: the cap holds for that, too

	KVTokenBytes  int64 // of one token in all layers
	Context       int   // tokens of each sequence
	Sequences     int   // that run at once; 0 is 1
	Shared        bool  // sequences share a pool for one context at least, instead of one each
	KVBlockTokens int   // a sequence occupies whole blocks; 0 is 1
	HeadRows      int   // rows of a batch that reach the head; 0 is Sequences

	MaxChunk     int   // most rows of a prefill chunk; 0 is 512
	FixedScratch int64 // activation memory that does not depend on the rows
	Align        int   // of requests to the drive; 0 is 4096
	Page         int64 // memory page; 0 is 4096
	ReadCache    int64 // page cache that one read leaves for a moment: 0 if the files are direct
}

// Plan is the answer. Sizes are in bytes.
type Plan struct {
	Budget int64
	Least  int64 // the smallest budget that works, a multiple of 1 MiB
	Pools  [budget.Pools]int64

	Chunk           int // rows of a prefill chunk
	Resident        bool
	EmbeddingPinned bool
	PinnedBytes     int64 // of the matrices that a sweep uses
	StreamedBytes   int64 // of the matrices, per sweep; experts are no part of these
	ReadBytes       int64 // per sweep: streamed bytes with alignment and gaps
	Placement       *layout.Placement
	Experts         *Experts // nil without experts

	model *layout.Model
}

// TooSmallError says that a budget does not do, and which would.
type TooSmallError struct {
	Budget int64
	Least  int64
	Pools  [budget.Pools]int64 // at the least
}

func (e *TooSmallError) Error() string {
	var parts []string
	for p, n := range e.Pools {
		parts = append(parts, fmt.Sprintf("%s %s", budget.Pool(p), machine.FormatSize(n)))
	}
	return fmt.Sprintf("%s is too little memory for this model: it needs at least %d MiB (%s)",
		machine.FormatSize(e.Budget), e.Least/machine.MiB, strings.Join(parts, ", "))
}

// Make plans a request. When the budget does not do it fails with a *TooSmallError.
func Make(r Request) (*Plan, error) {
	if err := r.normalize(); err != nil {
		return nil, err
	}
	s := newSizes(&r)
	p := s.smallest()
	if r.Budget < p.Least {
		return nil, &TooSmallError{Budget: r.Budget, Least: p.Least, Pools: p.Pools}
	}
	p.Budget = r.Budget
	if !s.resident(p) {
		s.stream(p)
	}
	s.trim(p)
	p.PinnedBytes, p.StreamedBytes = p.Placement.Swept(r.Model)
	p.ReadBytes = p.Placement.ReadBytes()
	p.Experts = s.experts(p.Placement)
	if err := p.Placement.Check(r.Model); err != nil {
		return nil, err
	}
	return p, nil
}

// normalize fills in defaults and rejects what no plan can serve.
func (r *Request) normalize() error {
	r.Sequences = max(r.Sequences, 1)
	r.KVBlockTokens = max(r.KVBlockTokens, 1)
	if r.HeadRows < 1 {
		r.HeadRows = r.Sequences
	}
	if r.MaxChunk < 1 {
		r.MaxChunk = 512
	}
	if r.Align < 1 {
		r.Align = 4096
	}
	if r.Page < 1 {
		r.Page = 4096
	}
	if r.Model == nil || r.Align&(r.Align-1) != 0 || int64(r.Align) > maxAlign {
		return fmt.Errorf("plan: a model and an alignment that is a power of two up to %d are needed, not %d", maxAlign, r.Align)
	}
	if r.Budget < 0 || r.Runtime < 0 || r.KVTokenBytes < 0 || r.Context < 0 || r.FixedScratch < 0 {
		return fmt.Errorf("plan: a size is negative")
	}
	for i, x := range r.Model.Matrices {
		if x.ID != i {
			return fmt.Errorf("plan: matrix %s has the number %d, not %d", x.Name, x.ID, i)
		}
		if x.Rows < 1 || x.RowBytes() < 1 || x.Offset < 0 {
			return fmt.Errorf("plan: matrix %s has %d rows of %d bytes", x.Name, x.Rows, x.RowBytes())
		}
	}
	return r.Model.CheckSweep()
}
