package budget

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/machine"
)

// Holding is what one user of a pool has leased.
type Holding struct {
	Pool  Pool
	What  string
	Bytes int64
}

// NoRoomError says that bytes do not fit, and who holds the rest. Sizes are in bytes.
type NoRoomError struct {
	Pool    Pool   // of the (largest) want
	What    string // that want's user
	Asked   int64  // the sum of all wants
	Free    int64  // what was free after the holders shrank; negative: by how much a lower limit is passed
	Limit   int64
	Holders []Holding // largest first

	lowering bool
}

func (e *NoRoomError) Error() string {
	var b strings.Builder
	if e.lowering {
		fmt.Fprintf(&b, "memory limit cannot be lowered to %s: %s too much is in use",
			machine.FormatSize(e.Limit), machine.FormatSize(-e.Free))
	} else {
		fmt.Fprintf(&b, "no room for %s (%s): %s asked, %s free of %s", e.What, e.Pool,
			machine.FormatSize(e.Asked), machine.FormatSize(e.Free), machine.FormatSize(e.Limit))
	}
	const shown = 4
	for i, h := range e.Holders[:min(shown, len(e.Holders))] {
		sep := ", "
		if i == 0 {
			sep = "; held by "
		}
		fmt.Fprintf(&b, "%s%s (%s) %s", sep, h.What, h.Pool, machine.FormatSize(h.Bytes))
	}
	if n := len(e.Holders) - shown; n > 0 {
		fmt.Fprintf(&b, " and %d more", n)
	}
	return b.String()
}

func (l *Ledger) noRoom(asked int64, wants []Want) error {
	largest := slices.MaxFunc(wants, func(a, b Want) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return &NoRoomError{
		Pool: largest.Pool, What: largest.What, Asked: asked,
		Free: l.ceiling - l.used, Limit: l.ceiling, Holders: l.holdings(),
	}
}

// holdings lists who holds what, largest first. The lock is held.
func (l *Ledger) holdings() []Holding {
	all := make([]Holding, 0, len(l.held))
	for k, n := range l.held {
		all = append(all, Holding{k.pool, k.what, n})
	}
	slices.SortFunc(all, func(a, b Holding) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.What, b.What))
	})
	return all
}
