package regular

import (
	"fmt"
	"time"
)

// Limits bound what a Builder may use. A zero value means the default of that field; no Until means no clock.
type Limits struct {
	States int       // of an automaton, and of the sets of states that stand for it while it is built
	Bytes  int       // of the tables of an automaton
	Steps  int       // of all work of a Builder: the same on all machines, some 20 ns each
	Until  time.Time // when to give up
}

// DefaultLimits are those of a zero Limits: a second and some tens of megabytes at most.
var DefaultLimits = Limits{States: 50_000, Bytes: 32 << 20, Steps: 50_000_000}

// Within are DefaultLimits with no more states than a number, and tables in proportion.
func Within(states int) Limits {
	l := DefaultLimits
	l.Bytes = min(l.Bytes, states*(l.Bytes/l.States))
	l.States = min(l.States, states)
	return l
}

// A LimitError says that a language needs more than the limits allow.
type LimitError struct {
	Limit string // states, bytes, steps or time
	Value int    // of the limit; of time: 0
}

func (e *LimitError) Error() string {
	if e.Limit == "time" {
		return "the automaton takes more time than the limit allows"
	}
	return fmt.Sprintf("the automaton needs more than %d %s, the limit", e.Value, e.Limit)
}

// A Builder makes languages within limits. It is for one goroutine.
type Builder struct {
	limits Limits
	steps  int
	sets   map[string]*DFA // by the bytes of the set
	named  map[string]*DFA
}

// NewBuilder gives a builder whose whole work is bounded.
func NewBuilder(l Limits) *Builder {
	if l.States == 0 {
		l.States = DefaultLimits.States
	}
	if l.Bytes == 0 {
		l.Bytes = DefaultLimits.Bytes
	}
	if l.Steps == 0 {
		l.Steps = DefaultLimits.Steps
	}
	return &Builder{limits: l, sets: map[string]*DFA{}, named: map[string]*DFA{}}
}

// step counts work; the clock is read now and then.
func (b *Builder) step(n int) error {
	before := b.steps
	b.steps += n
	if b.steps > b.limits.Steps {
		return &LimitError{"steps", b.limits.Steps}
	}
	if !b.limits.Until.IsZero() && before>>14 != b.steps>>14 && time.Now().After(b.limits.Until) {
		return &LimitError{Limit: "time"}
	}
	return nil
}

// room says whether a table of so many states and columns is allowed.
func (b *Builder) room(states, columns int) error {
	if states > b.limits.States {
		return &LimitError{"states", b.limits.States}
	}
	if states*columns*4 > b.limits.Bytes {
		return &LimitError{"bytes", b.limits.Bytes}
	}
	return nil
}
