// Package cfg is context-free grammars over bytes: a builder, and the machine that runs them.
//
// A grammar is built from expressions (literals, characters, sequences, alternatives, repetitions,
// automata, references to rules). Any context-free grammar will do, ambiguous and left-recursive ones
// as well. Expressions are shared: building the same one twice gives the same handle.
package cfg

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Expr is a handle of an expression of one Builder. The zero Expr matches nothing at all.
type Expr uint32

// Rule is a handle of a named rule of one Builder.
type Rule uint32

const (
	nothing Expr = 0 // no text
	empty   Expr = 1 // the empty text
)

type kind uint8

const (
	kNothing kind = iota
	kEmpty
	kBytes  // text
	kByte   // one byte of x..y
	kRunes  // one character: args hold pairs
	kSeq    // args in order
	kAlt    // one of args
	kRepeat // args[0], x..y times; y < 0: no bound
	kDFA    // automata[x]
	kToken  // the control token x
	kRef    // rules[x]
)

type node struct {
	kind kind
	x, y int32
	args []uint32
	text string
}

type rule struct {
	name    string
	body    Expr
	defined bool
	lenient bool // it may match no text at all
}

// Builder makes a grammar. The first error sticks: later calls return the empty language, and
// Grammar returns the error.
type Builder struct {
	limits   Limits
	deadline time.Time
	nodes    []node
	index    map[string]Expr
	rules    []rule
	automata []*automaton
	bytes    int
	key      []byte
	err      error
}

// New makes a Builder; the limit on time begins now.
func New(l Limits) *Builder {
	b := &Builder{limits: l.withDefaults(), index: map[string]Expr{}}
	b.deadline = time.Now().Add(b.limits.Time)
	b.intern(node{kind: kNothing})
	b.intern(node{kind: kEmpty})
	return b
}

// Limits are the builder's limits, defaults filled in.
func (b *Builder) Limits() Limits { return b.limits }

// Deadline is when the limit on time is up.
func (b *Builder) Deadline() time.Time { return b.deadline }

// Fail records an error, if it is the first.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Err is the first error so far.
func (b *Builder) Err() error { return b.err }

func (b *Builder) failf(format string, args ...any) Expr {
	b.Fail(fmt.Errorf("grammar: "+format, args...))
	return nothing
}

func (b *Builder) late() bool {
	if b.err == nil && time.Now().After(b.deadline) {
		b.Fail(&LimitError{Limit: "time", Max: b.limits.Time.String()})
	}
	return b.err != nil
}

func (b *Builder) intern(n node) Expr {
	if b.err != nil {
		return nothing
	}
	key := append(b.key[:0], byte(n.kind))
	key = binary.LittleEndian.AppendUint32(key, uint32(n.x))
	key = binary.LittleEndian.AppendUint32(key, uint32(n.y))
	for _, a := range n.args {
		key = binary.LittleEndian.AppendUint32(key, a)
	}
	key = append(key, n.text...)
	b.key = key
	if e, ok := b.index[string(key)]; ok {
		return e
	}
	if b.bytes += len(n.text) + 4*len(n.args); b.bytes > b.limits.Bytes {
		b.Fail(overLimit("bytes", b.limits.Bytes, "bytes of literals"))
		return nothing
	}
	if len(b.nodes) >= b.limits.Nodes {
		b.Fail(overLimit("nodes", b.limits.Nodes, "expressions"))
		return nothing
	}
	if len(b.nodes)%1024 == 1023 && b.late() {
		return nothing
	}
	e := Expr(len(b.nodes))
	b.nodes = append(b.nodes, n)
	b.index[string(key)] = e
	return e
}

func (b *Builder) valid(e Expr) bool {
	if b.err == nil && int(e) >= len(b.nodes) {
		b.failf("an expression of another builder")
	}
	return b.err == nil
}

// Bytes is a literal; it need not be UTF-8.
func (b *Builder) Bytes(s string) Expr {
	if s == "" {
		return empty
	}
	return b.intern(node{kind: kBytes, text: s})
}

// Byte is one byte of lo..hi.
func (b *Builder) Byte(lo, hi byte) Expr {
	if lo > hi {
		return nothing
	}
	return b.intern(node{kind: kByte, x: int32(lo), y: int32(hi)})
}

// Runes is one character out of the ranges, both ends included, as UTF-8; surrogates are left out.
func (b *Builder) Runes(ranges ...[2]rune) Expr {
	flat := joinRanges(ranges)
	if len(flat) == 0 {
		return nothing
	}
	args := make([]uint32, 0, 2*len(flat))
	for _, r := range flat {
		args = append(args, uint32(r[0]), uint32(r[1]))
	}
	return b.intern(node{kind: kRunes, args: args})
}

// OtherRunes is one character that is in none of the ranges.
func (b *Builder) OtherRunes(ranges ...[2]rune) Expr {
	var others [][2]rune
	next := rune(0)
	for _, r := range joinRanges(ranges) {
		others = append(others, [2]rune{next, r[0] - 1})
		next = r[1] + 1
	}
	return b.Runes(append(others, [2]rune{next, utf8.MaxRune})...)
}

// scalars cuts a range to the characters that UTF-8 can write.
func scalars(r [2]rune) [][2]rune {
	const surrogate, after = 0xd800, 0xe000
	lo, hi := max(r[0], 0), min(r[1], utf8.MaxRune)
	var out [][2]rune
	if lo < surrogate {
		out = append(out, [2]rune{lo, min(hi, surrogate-1)})
	}
	if hi >= after {
		out = append(out, [2]rune{max(lo, after), hi})
	}
	return slices.DeleteFunc(out, func(r [2]rune) bool { return r[0] > r[1] })
}

// joinRanges cuts ranges to characters, sorts them, and joins those that touch.
func joinRanges(ranges [][2]rune) [][2]rune {
	var all, out [][2]rune
	for _, r := range ranges {
		all = append(all, scalars(r)...)
	}
	slices.SortFunc(all, func(a, b [2]rune) int { return int(a[0]) - int(b[0]) })
	for _, r := range all {
		if n := len(out); n > 0 && r[0] <= out[n-1][1]+1 {
			out[n-1][1] = max(out[n-1][1], r[1])
			continue
		}
		out = append(out, r)
	}
	return out
}

// Seq is its expressions one after another; of none, the empty text.
func (b *Builder) Seq(e ...Expr) Expr {
	var args []uint32
	for _, x := range e {
		if !b.valid(x) || x == nothing {
			return nothing
		}
		if b.nodes[x].kind == kSeq {
			for _, a := range b.nodes[x].args {
				args = b.appendSeq(args, Expr(a))
			}
			continue
		}
		args = b.appendSeq(args, x)
	}
	switch len(args) {
	case 0:
		return empty
	case 1:
		return Expr(args[0])
	}
	return b.intern(node{kind: kSeq, args: args})
}

// appendSeq joins neighbouring literals, so that equal texts become equal expressions.
func (b *Builder) appendSeq(args []uint32, x Expr) []uint32 {
	if x == empty {
		return args
	}
	if n := len(args); n > 0 && b.nodes[x].kind == kBytes && b.nodes[args[n-1]].kind == kBytes {
		args[n-1] = uint32(b.Bytes(b.nodes[args[n-1]].text + b.nodes[x].text))
		return args
	}
	return append(args, uint32(x))
}

// Alt is any one of its expressions; of none, nothing.
func (b *Builder) Alt(e ...Expr) Expr {
	var args []uint32
	for _, x := range e {
		if !b.valid(x) {
			return nothing
		}
		switch {
		case x == nothing:
		case b.nodes[x].kind == kAlt:
			args = append(args, b.nodes[x].args...)
		default:
			args = append(args, uint32(x))
		}
	}
	slices.Sort(args)
	args = slices.Compact(args)
	switch len(args) {
	case 0:
		return nothing
	case 1:
		return Expr(args[0])
	}
	return b.intern(node{kind: kAlt, args: args})
}

// Opt is e or the empty text.
func (b *Builder) Opt(e Expr) Expr { return b.Alt(empty, e) }

// Repeat is e at least min and at most max times; max < 0 means no upper bound. Large counts are
// counted while matching, not written out.
func (b *Builder) Repeat(e Expr, min, max int) Expr {
	const most = 1 << 30
	if !b.valid(e) {
		return nothing
	}
	if max > most {
		max = -1
	}
	switch {
	case min < 0 || min > most || (max >= 0 && min > max):
		return b.failf("a repetition of %d to %d times", min, max)
	case max == 0 || e == empty || (e == nothing && min == 0):
		return empty
	case e == nothing:
		return nothing
	case min == 1 && max == 1:
		return e
	}
	if max < 0 {
		max = -1
	}
	if n := b.nodes[e]; n.kind == kRepeat && n.y < 0 && n.x <= 1 && min <= 1 && max < 0 {
		return b.Repeat(Expr(n.args[0]), min*int(n.x), -1)
	}
	return b.intern(node{kind: kRepeat, x: int32(min), y: int32(max), args: []uint32{uint32(e)}})
}

// Token is one control token, which only such an expression allows.
func (b *Builder) Token(id int32) Expr {
	if id < 0 {
		return b.failf("a token id of %d", id)
	}
	return b.intern(node{kind: kToken, x: id})
}

// NewRule makes a rule, to be defined later; the name is for errors.
func (b *Builder) NewRule(name string) Rule {
	if b.err == nil && len(b.rules) >= b.limits.Rules {
		b.Fail(overLimit("rules", b.limits.Rules, "rules"))
	}
	if b.err != nil {
		return 0
	}
	b.rules = append(b.rules, rule{name: name})
	return Rule(len(b.rules) - 1)
}

// Lenient lets a rule match no text at all, where others would be refused: what needs it is then
// left out. It is for rules that a program writes.
func (b *Builder) Lenient(r Rule) {
	if b.err == nil && int(r) < len(b.rules) {
		b.rules[r].lenient = true
	}
}

// Ref is a reference to a rule.
func (b *Builder) Ref(r Rule) Expr {
	if b.err == nil && int(r) >= len(b.rules) {
		return b.failf("a rule of another builder")
	}
	return b.intern(node{kind: kRef, x: int32(r)})
}

// Define sets a rule's body, once.
func (b *Builder) Define(r Rule, e Expr) {
	switch {
	case !b.valid(e):
	case int(r) >= len(b.rules):
		b.failf("a rule of another builder")
	case b.rules[r].defined:
		b.failf("rule %q is defined twice", b.rules[r].name)
	default:
		b.rules[r].body, b.rules[r].defined = e, true
	}
}
