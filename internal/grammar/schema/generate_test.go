package schema

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway/spillway/internal/grammar/cfg"
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

// closing is the order of preference of bytes that bring a text to its end.
const closing = "}]\"0123456789aeltrufsn:,-."

// write is a random text of the language; false if it grew too long.
func (w *writer) write(r *rand.Rand, soft, hard int) (string, bool) {
	if w.machine.Full() {
		w.machine = w.grammar.NewMachine()
	}
	var text []byte
	at := w.machine.Start()
	for len(text) < hard {
		var next []byte
		for c := range 256 {
			if w.machine.Step(at, byte(c)) != cfg.Dead {
				next = append(next, byte(c))
			}
		}
		long := len(text) > soft
		if w.machine.MayEnd(at) && (len(next) == 0 || long || r.IntN(4) == 0) {
			return string(text), true
		}
		if len(next) == 0 {
			return string(text), false
		}
		c := w.choose(r, next, long)
		text = append(text, c)
		at = w.machine.Step(at, c)
	}
	return string(text), false
}

func (w *writer) choose(r *rand.Rand, next []byte, long bool) byte {
	if long && r.IntN(20) > 0 {
		for i := range len(closing) {
			if bytes.IndexByte(next, closing[i]) >= 0 {
				return closing[i]
			}
		}
	}
	// plain text and the structure of JSON are likelier than other bytes
	var likely []byte
	for _, c := range next {
		if c < 0x80 && strings.IndexByte("\"{}[]:,\\", c) >= 0 || 'a' <= c && c <= 'e' || '0' <= c && c <= '3' {
			likely = append(likely, c)
		}
	}
	if len(likely) > 0 && r.IntN(5) > 0 {
		next = likely
	}
	return next[r.IntN(len(next))]
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
