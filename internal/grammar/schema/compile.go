package schema

import (
	"strconv"
	"time"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
)

// Limits of the work that one schema may ask for.
const (
	maxConjs  = 50_000
	maxLits   = 2_000_000 // of all conjs
	maxAlts   = 1_000
	maxSteps  = 400_000
	maxTime   = 5 * time.Second
	pruneFrom = 4 // pairs of alternatives from which on contradictions are looked for at once
)

type compiler struct {
	doc   *Document
	out   *cfg.Builder
	words *regular.Builder
	o     Options

	conjs      map[string]*conj
	lits       int // of all of them
	ands       map[[2]int]*conj
	free       *conj // any value
	never      *conj // no value
	expansions map[expansion][]*alt
	steps      int
	until      time.Time
	nesting    int

	unions   map[*conj][]*conj
	literals map[*Value]*Schema
	patterns map[string]*regular.DFA
	lengths  map[[2]int]*regular.DFA
	products map[[2]*regular.DFA]*regular.DFA
	keys     map[*conj]*regular.DFA

	exprs map[*conj]cfg.Expr
	todo  []pending
	dfas  map[*regular.DFA]cfg.Expr // with JSON's spelling
	named map[string]cfg.Expr
}

func newCompiler(doc *Document, out *cfg.Builder, o Options) *compiler {
	until := time.Now().Add(maxTime)
	words := regular.Within(out.Limits().Nodes)
	words.Until = until
	c := &compiler{
		doc: doc, out: out, o: o, words: regular.NewBuilder(words), until: until,
		conjs: map[string]*conj{}, ands: map[[2]int]*conj{}, expansions: map[expansion][]*alt{},
		unions: map[*conj][]*conj{}, literals: map[*Value]*Schema{},
		patterns: map[string]*regular.DFA{}, lengths: map[[2]int]*regular.DFA{},
		products: map[[2]*regular.DFA]*regular.DFA{}, keys: map[*conj]*regular.DFA{},
		exprs: map[*conj]cfg.Expr{}, dfas: map[*regular.DFA]cfg.Expr{}, named: map[string]cfg.Expr{},
	}
	c.free = &conj{id: 0}
	c.never = &conj{id: 1, known: true}
	c.conjs[""], c.conjs["never"] = c.free, c.never
	return c
}

// Options are how instances are written.
type Options struct {
	FlexibleSpace bool              // white space wherever JSON allows it between tokens
	MaxSpace      int               // at most so many characters at each such place; 0: no bound
	Others        map[string][]byte // JSON Schemas that references may lead to, by absolute URI
}

// Compile writes to b the instances of a JSON Schema: UTF-8 JSON, properties in the schema's order,
// others after them. Every text of the expression is accepted by the schema. Errors are *Error, or
// those of b.
func Compile(b *cfg.Builder, text []byte, o Options) (cfg.Expr, error) {
	doc, err := Parse(text, o.Others)
	if err != nil {
		return 0, err
	}
	return CompileDocument(b, doc, o)
}

// CompileDocument is Compile of a schema that was parsed; it may add schemas to the document.
func CompileDocument(b *cfg.Builder, doc *Document, o Options) (cfg.Expr, error) {
	c := newCompiler(doc, b, o)
	root, err := c.of(doc.Root, false)
	if err != nil {
		return 0, err
	}
	empty, err := c.isEmpty(root)
	if err != nil {
		return 0, err
	}
	if empty {
		return 0, &Error{Reason: Empty, Where: doc.Root.Where, Detail: "no value satisfies the schema"}
	}
	e, err := c.expr(root)
	if err == nil {
		err = c.defineRules()
	}
	if err == nil {
		err = b.Err()
	}
	return e, err
}

// step counts work; s is where it is done.
func (c *compiler) step(s *Schema, n int) error {
	before := c.steps
	c.steps += n
	if c.steps > maxSteps {
		return &Error{Limit, "", s.Where, "the schema asks for more than " + itoa(maxSteps) + " steps of work"}
	}
	if before>>8 != c.steps>>8 && time.Now().After(c.until) {
		return &Error{Limit, "", s.Where, "the schema asks for more than " + maxTime.String() + " of work"}
	}
	return nil
}

func itoa(n int) string { return strconv.Itoa(n) }
