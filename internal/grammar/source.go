package grammar

import (
	"fmt"
	"time"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/gbnf"
	"github.com/spillway/spillway/internal/grammar/lark"
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

// Lookup is the id of a token by its text, such as <think>.
type Lookup func(text string) (id int32, ok bool)

// Compile compiles a Source for a vocabulary.
func Compile(s Source, v *Vocabulary, l cfg.Limits) (*Constraint, error) {
	g, err := CompileGrammar(s, v.tokens.ID, l)
	if err != nil {
		return nil, err
	}
	return NewConstraint(g, v)
}

// CompileGrammar compiles a Source; lookup may be nil where there are no tokens.
func CompileGrammar(s Source, lookup Lookup, l cfg.Limits) (*cfg.Grammar, error) {
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
	lookup  Lookup
	regular regular.Limits
	depth   int
}

func newCompiler(lookup Lookup, l cfg.Limits) *compiler {
	c := &compiler{b: cfg.New(l), lookup: lookup}
	c.regular = regular.Within(c.b.Limits().Nodes)
	c.regular.Until = time.Now().Add(c.b.Limits().Time)
	return c
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
		return gbnf.Parse(c.b, s.Text, gbnf.Options{Token: c.lookup})
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
		Token:   c.lookup,
		Regular: c.regular,
		JSON: func(b *cfg.Builder, text string) (cfg.Expr, error) {
			return schema.Compile(b, []byte(text), schema.Options{FlexibleSpace: true, MaxSpace: 16})
		},
	})
}
