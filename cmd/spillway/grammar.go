package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	structured "github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
	"github.com/spillway/spillway/internal/grammar/schema/accept"
)

type grammarCommand struct {
	Check grammarCheck `cmd:"" help:"Whether a text is what a JSON Schema or a grammar asks for, and where it fails."`
}

func (*grammarCommand) Help() string {
	return "Structured output follows JSON Schemas, regular expressions and grammars. See spillway grammar check --help."
}

type grammarCheck struct {
	withoutModel
	Schema  string `arg:"" help:"File of the schema or expression; - for stdin." placeholder:"SCHEMA"`
	File    string `arg:"" optional:"" help:"The text to check. Default: stdin." placeholder:"FILE"`
	Kind    string `help:"What SCHEMA is: json-schema, regex (ECMA-262), gbnf, lark or structural-tag; all but the first are about the whole text, byte by byte. Default: gbnf for *.gbnf, lark for *.lark, else json-schema." placeholder:"KIND"`
	Formats bool   `help:"Check the formats of a JSON Schema (date, email …); --no-formats takes them for notes." default:"true" negatable:""`
}

func (*grammarCheck) Help() string {
	return "For a JSON Schema the text is JSON in any spelling, order and white space; a name twice in an object is refused. It is read as a " +
		"stream, and refused at the first byte that decides it. Exit codes: 0 accepted, 1 not accepted, 4 the schema is damaged or cannot be enforced; " +
		"what cannot be enforced is never ignored.\n\nWith --json: {\"accepted\", \"failure\": null or {offset, line, column, pointer, keyword, schema, detail}, " +
		"\"generation_error\": null, or why answers cannot be held to the schema while they are written}; keyword is empty where the text is no JSON." +
		"\n\nExamples:\n\n  spillway grammar check person.schema.json answer.json\n\n  echo '[1, 2]' | spillway grammar check list.schema.json --json" +
		"\n\n  printf 2026-01-31 | spillway grammar check --kind regex date.regex\n\n  spillway grammar check list.gbnf answer.txt"
}

// A grammarError is a schema or grammar that is damaged or cannot be enforced.
type grammarError struct{ error }

func (e grammarError) Unwrap() error { return e.error }

// A textChecker takes a text in pieces.
type textChecker interface {
	Write([]byte) error // an *accept.Failure, or nil
	Close() error       // likewise
}

// grammarKinds are the notations beside JSON Schema.
var grammarKinds = map[string]structured.Kind{
	"regex": structured.Regex, "gbnf": structured.GBNF, "lark": structured.Lark, "structural-tag": structured.StructuralTag,
}

// checker makes a checker of a schema's text, and says why it does for no generation.
func (c *grammarCheck) checker(text []byte) (check textChecker, generation error, err error) {
	if kind, ok := grammarKinds[c.Kind]; ok {
		check, err = c.ofGrammar(text, kind)
		return check, nil, err
	}
	return c.jsonSchema(text)
}

// kindOf is the notation that the name of a file says.
func kindOf(file string) string {
	switch filepath.Ext(file) {
	case ".gbnf":
		return "gbnf"
	case ".lark":
		return "lark"
	}
	return "json-schema"
}

// refused is why a schema or grammar is; guessed: nobody said what it is.
func (c *grammarCheck) refused(err error, text []byte, guessed bool) error {
	if guessed && c.Kind == "json-schema" && !json.Valid(text) {
		err = fmt.Errorf("%w; if it is no JSON Schema, --kind says what it is", err)
	}
	return grammarError{fmt.Errorf("%s: %w", visible(c.Schema, 200), err)}
}

func (c *grammarCheck) run(s *session) error {
	guessed := c.Kind == ""
	if guessed {
		c.Kind = kindOf(c.Schema)
	}
	if _, ok := grammarKinds[c.Kind]; !ok && c.Kind != "json-schema" {
		return usagef("--kind %.40q is not known; there are json-schema, regex, gbnf, lark and structural-tag", c.Kind)
	}
	if c.Schema == "-" && (c.File == "" || c.File == "-") {
		return usagef("the schema and the text cannot both come from stdin")
	}
	text, err := s.grammarText(c.Schema)
	if err != nil {
		return err
	}
	check, generation, err := c.checker(text)
	if err != nil {
		return c.refused(err, text, guessed)
	}
	in, name, err := s.checkedText(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	failure, err := checkStream(check, in)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return c.report(s, name, failure, generation)
}

// mostGrammar bounds the bytes of a schema or grammar.
const mostGrammar = 16 << 20

// grammarText reads a schema or grammar.
func (s *session) grammarText(file string) ([]byte, error) {
	in, name, err := s.checkedText(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, mostGrammar+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", name, err)
	case len(text) > mostGrammar:
		return nil, grammarError{fmt.Errorf("%s has more than %d bytes", name, mostGrammar)}
	}
	return text, nil
}

// checkedText opens a file or stdin.
func (s *session) checkedText(file string) (in io.ReadCloser, name string, err error) {
	if file == "" || file == "-" {
		return io.NopCloser(s.stdin), "stdin", nil
	}
	in, err = os.Open(file)
	return in, visible(file, 200), err
}

// checkStream feeds a checker until the end or a failure.
func checkStream(check textChecker, in io.Reader) (*accept.Failure, error) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := in.Read(buffer)
		var failure *accept.Failure
		if errors.As(check.Write(buffer[:n]), &failure) {
			return failure, nil
		}
		if errors.Is(err, io.EOF) {
			errors.As(check.Close(), &failure)
			return failure, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// A checkedReport is what grammar check --json prints.
type checkedReport struct {
	Accepted        bool            `json:"accepted"`
	Failure         *checkedFailure `json:"failure"`
	GenerationError *string         `json:"generation_error"`
}

type checkedFailure struct {
	Offset  int64  `json:"offset"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Pointer string `json:"pointer"`
	Keyword string `json:"keyword"`
	Schema  string `json:"schema"`
	Detail  string `json:"detail"`
}

func (c *grammarCheck) report(s *session, name string, f *accept.Failure, generation error) error {
	if s.flags.JSON {
		r := checkedReport{Accepted: f == nil}
		if f != nil {
			r.Failure = &checkedFailure{f.Offset, f.Line, f.Column, f.Pointer, f.Keyword, f.Schema, f.Detail}
		}
		if generation != nil {
			text := generation.Error()
			r.GenerationError = &text
		}
		if err := s.printJSON(r); err != nil {
			return err
		}
	}
	if f != nil {
		return fmt.Errorf("%s: %w", name, f)
	}
	if s.flags.JSON {
		return nil
	}
	_, err := fmt.Fprintf(s.stdout, "%s is accepted\n", name)
	return err
}

func (c *grammarCheck) jsonSchema(text []byte) (check textChecker, generation error, err error) {
	doc, err := schema.Parse(text, nil)
	if err != nil {
		return nil, nil, err
	}
	p, err := accept.Compile(doc, accept.Options{IgnoreFormats: !c.Formats})
	if err != nil {
		return nil, nil, err
	}
	_, generation = schema.CompileDocument(cfg.New(cfg.Limits{}), doc, schema.Options{})
	return p.New(), generation, nil
}

// ofGrammar reads other notations than JSON Schema. A line break at the end of a file with a regular expression is
// no part of it.
func (c *grammarCheck) ofGrammar(text []byte, kind structured.Kind) (textChecker, error) {
	source := structured.Source{Kind: kind, Text: string(text)}
	if kind == structured.Regex {
		source.Text = strings.TrimSuffix(strings.TrimSuffix(source.Text, "\n"), "\r")
	}
	g, err := structured.CompileGrammar(source, nil, cfg.Limits{})
	if err != nil {
		return nil, err
	}
	m := g.NewMachine()
	return &grammarChecker{grammar: g, machine: m, state: m.Start(), at: accept.Failure{Line: 1, Column: 1}}, nil
}

// A grammarChecker follows a text through the machine of a grammar.
type grammarChecker struct {
	grammar *cfg.Grammar
	machine *cfg.Machine
	state   cfg.Config
	at      accept.Failure // where the next byte is
}

func (g *grammarChecker) Write(text []byte) error {
	for _, b := range text {
		if g.machine.Full() {
			from, states := g.machine, []cfg.Config{g.state}
			g.machine = g.grammar.NewMachine()
			g.machine.Import(from, states)
			g.state = states[0]
		}
		next := g.machine.Step(g.state, b)
		switch err := g.machine.Err(); {
		case err != nil:
			return g.fail(err.Error())
		case next == cfg.Dead && g.machine.MayEnd(g.state):
			return g.fail("the text goes on where its match ends")
		case next == cfg.Dead:
			return g.fail("no match goes on so")
		}
		g.state = next
		g.at.Offset++
		g.at.Column++
		if b == '\n' {
			g.at.Line, g.at.Column = g.at.Line+1, 1
		}
	}
	return nil
}

func (g *grammarChecker) Close() error {
	if !g.machine.MayEnd(g.state) {
		return g.fail("the text ends before its match does")
	}
	return nil
}

func (g *grammarChecker) fail(detail string) error {
	failure := g.at
	failure.Detail = detail
	return &failure
}
