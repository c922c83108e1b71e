// Package regular computes with regular languages of text: sets of strings of valid UTF-8, each held as a
// minimal deterministic automaton over bytes. It reads ECMA-262 regular expressions, joins, cuts and
// complements languages, and has the languages of JSON strings, numbers and formats.
package regular

// A DFA is a minimal automaton without states that cannot accept. It is immutable; two of the same language
// are equal in all fields.
type DFA struct {
	class   [256]uint8 // byte → column of next
	columns int
	next    []int32 // state*columns + column → state, dead or less: no string goes on so
	accept  []bool
}

const dead = -1

// Start is the state before the first byte.
func (d *DFA) Start() int { return 0 }

// Next is the state after one more byte, < 0 if no string of the language goes on so.
func (d *DFA) Next(state int, c byte) int {
	return int(d.next[state*d.columns+int(d.class[c])])
}

// Accepting says whether the bytes so far are a string of the language.
func (d *DFA) Accepting(state int) bool { return d.accept[state] }

// States is how many states there are; at least the start.
func (d *DFA) States() int { return len(d.accept) }

// Bytes is the size of the tables.
func (d *DFA) Bytes() int { return len(d.next)*4 + len(d.accept) + len(d.class) }

// Match says whether s is in the language.
func (d *DFA) Match(s string) bool {
	state := 0
	for i := range len(s) {
		if state = d.Next(state, s[i]); state < 0 {
			return false
		}
	}
	return d.accept[state]
}

// Empty says whether the language has no string at all.
func (d *DFA) Empty() bool { return len(d.accept) == 1 && !d.accept[0] }

// Equal says whether two languages have the same strings.
func (d *DFA) Equal(e *DFA) bool {
	if d.class != e.class || d.columns != e.columns || len(d.accept) != len(e.accept) {
		return false
	}
	for i, a := range d.accept {
		if a != e.accept[i] {
			return false
		}
	}
	for i, n := range d.next {
		if n != e.next[i] {
			return false
		}
	}
	return true
}

// Edges calls f for each run of neighbouring bytes with one target, in order.
func (d *DFA) Edges(state int, f func(lo, hi byte, to int)) {
	row := d.row(state)
	for lo := 0; lo < 256; {
		column := d.class[lo]
		to, hi := row[column], lo
		for hi < 255 && (d.class[hi+1] == column || row[d.class[hi+1]] == to) {
			hi++
		}
		if to >= 0 {
			f(byte(lo), byte(hi), int(to))
		}
		lo = hi + 1
	}
}

// first has for each column the lowest byte in it.
func (d *DFA) first() []byte {
	first := make([]byte, d.columns)
	for c := 255; c >= 0; c-- {
		first[d.class[c]] = byte(c)
	}
	return first
}

// cuts marks the bytes that another column begins with.
func (d *DFA) cuts(at *[257]bool) {
	for c := 1; c < 256; c++ {
		if d.class[c] != d.class[c-1] {
			at[c] = true
		}
	}
}
