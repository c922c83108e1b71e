package schema

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/cfg/cfgtest"
)

// writer writes random texts of a schema's language, and has a validator of another make.
type writer struct {
	grammar *cfg.Grammar
	machine *cfg.Machine
	valid   *jsonschema.Schema
}

const rootOf = "http://example.test/root"

// newWriter compiles a schema both ways; without is the draft of schemas that do not say.
func newWriter(text []byte, o Options, without *jsonschema.Draft) (*writer, error) {
	b := cfg.New(cfg.Limits{})
	e, err := Compile(b, text, o)
	if err != nil {
		return nil, err
	}
	w := &writer{}
	if w.grammar, err = b.Grammar(e); err != nil {
		return nil, err
	}
	w.machine = w.grammar.NewMachine()
	w.valid, err = validator(text, o, without)
	return w, err
}

// validator is a validator of another make.
func validator(text []byte, o Options, without *jsonschema.Draft) (*jsonschema.Schema, error) {
	v := jsonschema.NewCompiler()
	v.DefaultDraft(without)
	v.AssertFormat()
	v.UseRegexpEngine(ecma)
	for uri, other := range o.Others {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(other))
		if err != nil {
			return nil, err
		}
		if err := v.AddResource(uri, doc); err != nil {
			return nil, err
		}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if err := v.AddResource(rootOf, doc); err != nil {
		return nil, err
	}
	return v.Compile(rootOf)
}

// ecmaRegexp reads regular expressions as JSON Schema means them.
type ecmaRegexp struct{ *regexp2.Regexp }

func ecma(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp2.Compile(pattern, regexp2.ECMAScript|regexp2.Unicode)
	return ecmaRegexp{re}, err
}

func (re ecmaRegexp) MatchString(s string) bool {
	ok, err := re.Regexp.MatchString(s)
	return ok && err == nil
}

// write is a random text of the language; false if it grew too long.
func (w *writer) write(r *rand.Rand, soft, hard int) (string, bool) {
	if w.machine.Full() {
		w.machine = w.grammar.NewMachine()
	}
	return cfgtest.Write(w.machine, r, soft, hard)
}

// check says why a text is not valid.
func (w *writer) check(text string) error { return checkWith(w.valid, text) }

func checkWith(valid *jsonschema.Schema, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return valid.Validate(v)
}

func asError(err error, to **Error) bool { return errors.As(err, to) }

// keywordOf is the keyword of a refusal.
func keywordOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		if e.Keyword == "" {
			return "(" + e.Detail + ")"
		}
		return e.Keyword
	}
	return err.Error()
}
