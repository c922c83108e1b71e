package grammar

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/gbnf"
	"github.com/spillway/spillway/internal/grammar/lark"
	"github.com/spillway/spillway/internal/grammar/notation"
	"github.com/spillway/spillway/internal/grammar/regular"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// Kind is a notation of what an answer must be.
type Kind uint8

const (
	JSONSchema    Kind = iota + 1 // Text is a JSON Schema
	JSONObject                    // any JSON object
	Regex                         // Text is an ECMA-262 regular expression that the whole answer matches
	Choice                        // one of Choices
	GBNF                          // Text is a grammar in llama.cpp's notation
	Lark                          // Text is a grammar in Lark's notation
	StructuralTag                 // Text is a structural tag as JSON, or Format is one
)

var kindNames = [...]string{"", "json_schema", "json_object", "regex", "choice", "gbnf", "lark", "structural_tag"}

func (k Kind) String() string {
	if int(k) < len(kindNames) && k > 0 {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Source is what an answer must be.
type Source struct {
	Kind    Kind
	Text    string
	Choices []string
	Format  Format         // of a StructuralTag, instead of Text
	Key     string         // stands for Format in a Cache; without it such a Source is not kept there
	Schema  schema.Options // how JSON is written
}

// Hash is of everything that a Source says; empty for a Format without a Key.
func (s *Source) Hash() string {
	if s.Format != nil && s.Key == "" {
		return ""
	}
	h := sha256.New()
	part := func(text string) { // told apart by their lengths
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(text)))
		h.Write(n[:])
		h.Write([]byte(text))
	}
	part(fmt.Sprint(uint8(s.Kind), s.Schema.FlexibleSpace, s.Schema.MaxSpace, len(s.Choices), s.Format != nil))
	part(s.Text)
	part(s.Key)
	for _, text := range s.Choices {
		part(text)
	}
	for _, uri := range slices.Sorted(maps.Keys(s.Schema.Others)) {
		part(uri)
		part(string(s.Schema.Others[uri]))
	}
	return string(h.Sum(nil))
}

// size is about the bytes of a Source's text.
func (s *Source) size() int64 {
	n := len(s.Text) + len(s.Key)
	for _, text := range s.Choices {
		n += len(text) + 1
	}
	return int64(n)
}

// Compile compiles a Source for a vocabulary.
func Compile(s Source, v *Vocabulary, l cfg.Limits) (*Constraint, error) {
	g, err := CompileGrammar(s, v.tokens.ID, l)
	if err != nil {
		return nil, err
	}
	return NewConstraint(g, v)
}

// CompileGrammar compiles a Source; lookup may be nil where there are no tokens.
func CompileGrammar(s Source, lookup notation.Lookup, l cfg.Limits) (*cfg.Grammar, error) {
	c := newCompiler(lookup, l)
	e, err := c.source(&s)
	if err != nil {
		return nil, err
	}
	return c.b.Grammar(e)
}

// compiler makes expressions of Sources and Formats.
type compiler struct {
	b       *cfg.Builder
	lookup  notation.Lookup
	regular regular.Limits
	depth   int
}

func newCompiler(lookup notation.Lookup, l cfg.Limits) *compiler {
	c := &compiler{b: cfg.New(l), lookup: lookup}
	c.regular = RegularLimits(c.b)
	return c
}

// RegularLimits bound the automata that are made for a grammar: by its nodes, and until its time is up.
func RegularLimits(b *cfg.Builder) regular.Limits {
	l := regular.Within(b.Limits().Nodes)
	l.Until = b.Deadline()
	return l
}

func (c *compiler) source(s *Source) (cfg.Expr, error) {
	switch s.Kind {
	case JSONSchema:
		return schema.Compile(c.b, []byte(s.Text), s.Schema)
	case JSONObject:
		return schema.Compile(c.b, []byte(`{"type":"object"}`), s.Schema)
	case Regex:
		return c.regexp(s.Text)
	case Choice:
		return c.choice(s.Choices)
	case GBNF:
		return gbnf.Parse(c.b, s.Text, c.lookup)
	case Lark:
		return c.lark(s.Text)
	case StructuralTag:
		f := s.Format
		if f == nil {
			var err error
			if f, err = ParseFormat([]byte(s.Text), s.Schema); err != nil {
				return 0, err
			}
		}
		return c.format(f, nil)
	}
	return 0, fmt.Errorf("grammar: unknown %v of constraint", s.Kind)
}

func (c *compiler) regexp(pattern string) (cfg.Expr, error) {
	d, err := regular.NewBuilder(c.regular).Regexp(pattern, false)
	if err != nil {
		return 0, fmt.Errorf("grammar: regular expression: %w", err)
	}
	return c.b.DFA(d), c.b.Err()
}

func (c *compiler) choice(texts []string) (cfg.Expr, error) {
	if len(texts) == 0 {
		return 0, fmt.Errorf("grammar: a choice of nothing: give at least one text")
	}
	all := make([]cfg.Expr, len(texts))
	for i, text := range texts {
		all[i] = c.b.Bytes(text)
	}
	return c.b.Alt(all...), c.b.Err()
}

func (c *compiler) lark(text string) (cfg.Expr, error) {
	return lark.Parse(c.b, text, lark.Options{
		Tokens:  c.lookup,
		Regular: c.regular,
		JSON: func(b *cfg.Builder, text string) (cfg.Expr, error) {
			return schema.Compile(b, []byte(text), schema.Options{FlexibleSpace: true, MaxSpace: 16})
		},
	})
}
