package accept

import (
	"fmt"
	"strings"

	"github.com/spillway/spillway/internal/grammar/schema"
)

// A Failure says where a text fails: it is no JSON, or not valid against the schema.
type Failure struct {
	Offset       int64  // bytes before the byte at which the failure is decided
	Line, Column int    // of that byte, from 1 on; columns count bytes
	Pointer      string // JSON pointer of the value that fails; empty: the whole
	Keyword      string // that refuses it; empty: the text is no JSON
	Schema       string // JSON pointer of the schema that holds the keyword, as a URI fragment
	Detail       string
}

func (f *Failure) Error() string {
	where := fmt.Sprintf("line %d, column %d (byte %d)", f.Line, f.Column, f.Offset)
	if f.Keyword == "" {
		return where + ": " + f.Detail
	}
	return fmt.Sprintf("%s: %s %s (keyword %q at %s)", where, named(f.Pointer), f.Detail, f.Keyword, f.Schema)
}

func named(pointer string) string {
	if pointer == "" {
		return "the value"
	}
	return pointer
}

// A cause is why a schema does not hold.
type cause struct {
	pointer string
	keyword string
	node    *node
	detail  string
}

func (c *cause) failure() *Failure {
	return &Failure{Pointer: c.pointer, Keyword: c.keyword, Schema: c.node.s.Where, Detail: c.detail}
}

// pointer is where the value of the frame at a depth stands.
func (c *Checker) pointer(f *frame) string {
	var b strings.Builder
	for _, up := range c.stack {
		if up == f {
			break
		}
		switch {
		case up.kind == kindObject && up.inName:
			if f.isName {
				return b.String() // a name is spoken of at its object
			}
		case up.kind == kindObject:
			b.WriteString("/" + schema.EscapePointer(up.names[len(up.names)-1]))
		case up.kind == kindArray:
			fmt.Fprintf(&b, "/%d", up.count-1)
		}
	}
	return b.String()
}
