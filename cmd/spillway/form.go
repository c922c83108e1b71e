package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/grammar/regular"
	"github.com/spillway/spillway/internal/report"
)

// formFlags say what an answer must be.
type formFlags struct {
	JSONSchema string   `help:"The answer is JSON that the JSON Schema in this file accepts." name:"json-schema" placeholder:"FILE"`
	Regex      string   `help:"The whole answer matches this regular expression (ECMA-262)." placeholder:"REGEX"`
	Grammar    string   `help:"The answer is what the grammar in this file writes: GBNF, or Lark if it is named *.lark." placeholder:"FILE"`
	Choice     []string `help:"The answer is one of these texts; give it once for each." sep:"none" placeholder:"TEXT"`
}

// form is what the flags ask for; files are read with their memory leased until the text is compiled.
func (f *formFlags) form(s *session, lease *textLease) (form spillway.Form, err error) {
	var given []string
	for _, flag := range []struct {
		name string
		is   bool
	}{
		{"--json-schema", f.JSONSchema != ""}, {"--regex", f.Regex != ""}, {"--grammar", f.Grammar != ""}, {"--choice", len(f.Choice) > 0},
	} {
		if flag.is {
			given = append(given, flag.name)
		}
	}
	if len(given) > 1 {
		return form, usagef("%s say both what the answer must be; give one of them", strings.Join(given[:2], " and "))
	}
	switch {
	case f.JSONSchema != "":
		form.Kind = spillway.FormJSONSchema
		form.Text, err = readTextFile("--json-schema", f.JSONSchema, lease)
	case f.Grammar != "":
		form.Kind = spillway.FormGBNF
		if strings.HasSuffix(f.Grammar, ".lark") {
			form.Kind = spillway.FormLark
		}
		form.Text, err = readTextFile("--grammar", f.Grammar, lease)
	case f.Regex != "":
		form.Kind, form.Text = spillway.FormRegex, f.Regex
	case len(f.Choice) > 0:
		form.Kind, form.Choices = spillway.FormChoice, f.Choice
	}
	return form, err
}

// setAside leases what an answer in a form takes, before the model takes the rest.
func setAside(o *opened, form spillway.Form) (release func(), err error) {
	if form.Kind == 0 {
		return func() {}, nil
	}
	n := spillway.AsideBytes(o.rt.Memory(), o.Layout().Vocab)
	release, err = o.rt.SetAside(n)
	if err != nil {
		return nil, enough(err, n, "an answer in a form")
	}
	return release, nil
}

// heldForm is the form that an answer is held to; the zero value is none.
type heldForm struct {
	kind  string
	limit *spillway.Limit
}

func (h heldForm) close() {
	if h.limit != nil {
		h.limit.Close()
	}
}

// hold holds the answer to a form.
func (f *formFlags) hold(ctx context.Context, m *spillway.Model, r *spillway.Request, form spillway.Form) (h heldForm, err error) {
	if form.Kind == 0 {
		return h, nil
	}
	if h.limit, err = m.Constrain(ctx, r, spillway.Demand{Form: form}); err != nil {
		return h, f.explain(err)
	}
	h.kind, r.Constraint = form.Kind.String(), h.limit.Constraint()
	return h, nil
}

// explain names the flag of a form that was refused.
func (f *formFlags) explain(err error) error {
	switch {
	case f.JSONSchema != "":
		return fmt.Errorf("%s: %w", visible(f.JSONSchema, 200), err)
	case f.Grammar != "":
		return fmt.Errorf("%s: %w", visible(f.Grammar, 200), err)
	}
	var refused *spillway.FormError
	var pattern *regular.SyntaxError
	unenforced := errors.As(err, &pattern) && pattern.Refused
	if errors.As(err, &refused) && !unenforced { // it is wrong on the command line
		err = usageError{err}
	}
	if f.Regex != "" {
		return fmt.Errorf("--regex: %w", err)
	}
	return fmt.Errorf("--choice: %w", err)
}

// formReport is what holding the answers to a form took; nil if none was.
func formReport(m *spillway.Model, kind string) *report.Form {
	c := m.Stats().Constraints
	if kind == "" {
		return nil
	}
	return &report.Form{
		Kind: kind, CompileSeconds: c.CompileTime.Seconds(), Masks: c.Masks, MaskSeconds: c.MaskTime.Seconds(), ForcedTokens: c.Forced,
	}
}
