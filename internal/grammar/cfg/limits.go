package cfg

import (
	"fmt"
	"time"
)

// Limits bound what a grammar may cost. A zero field takes its default.
type Limits struct {
	Nodes  int           // expressions, and states of the automata made from them; default 1<<18
	Rules  int           // named rules; default 1<<14
	Bytes  int           // bytes of literals; default 4 MiB
	Time   time.Duration // from New to the end of Grammar; default 5 s
	Memory int           // bytes of one machine's tables, and as much again for masks; default 8 MiB
	Depth  int           // levels of nesting while matching; default 1<<14
	Width  int           // readings of a text that an ambiguous grammar may hold at once; default 1<<14
}

func (l Limits) withDefaults() Limits {
	set := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	set(&l.Nodes, 1<<18)
	set(&l.Rules, 1<<14)
	set(&l.Bytes, 4<<20)
	set(&l.Memory, 8<<20)
	set(&l.Depth, 1<<14)
	set(&l.Width, 1<<14)
	if l.Time <= 0 {
		l.Time = 5 * time.Second
	}
	return l
}

// LimitError says which limit of Limits a grammar or a text went over.
type LimitError struct {
	Limit string // the field's name in lower case: nodes, rules, bytes, time, memory, depth, width
	Max   string // its value, with its unit
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("grammar: over the limit of %s (%s)", e.Max, e.Limit)
}

func overLimit(name string, limit int, unit string) *LimitError {
	return &LimitError{Limit: name, Max: fmt.Sprintf("%d %s", limit, unit)}
}
