package spillway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spillway/spillway/internal/calls"
	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// Form is what the content of an answer must be.
type Form = grammar.Source

// Kinds of forms.
const (
	FormJSONSchema    = grammar.JSONSchema
	FormJSONObject    = grammar.JSONObject
	FormRegex         = grammar.Regex
	FormChoice        = grammar.Choice
	FormGBNF          = grammar.GBNF
	FormLark          = grammar.Lark
	FormStructuralTag = grammar.StructuralTag
)

// A Demand is what a request demands of its answer. Reasoning may come first, as the model's dialect has it.
type Demand struct {
	Form Form // of the content; no Kind: any text

	// Calls of the request's Tools: CallAuto, CallRequired or CallNamed. In CallAuto a call that the answer begins is
	// held to the tool's schema, as far as the model has a dialect with a mark that calls begin with.
	Call    calls.Mode
	Name    string // with CallNamed
	OneCall bool   // at most; CallNamed is always one, and so is what a model without a dialect of its own must call
	// Strict refuses, in CallAuto too, tools whose schemas cannot be enforced; without it such calls are free.
	Strict bool
}

// Modes of Demand.Call.
const (
	CallAuto     = calls.Auto
	CallRequired = calls.Required
	CallNamed    = calls.Named
)

// FormError says why no answer can be held to what was demanded. Of a JSON Schema it names the keyword and where it
// stands, as far as there is one: the JSON pointer of the schema that holds it, such as #/properties/a.
type FormError struct {
	Kind           grammar.Kind
	Tool           string // whose schema it is; empty: the Form's
	Keyword, Where string
	cause          error
}

func (e *FormError) Error() string {
	if e.Tool != "" {
		return fmt.Sprintf("the schema of the tool %.80q: %v", e.Tool, e.cause)
	}
	return fmt.Sprintf("%v: %v", e.Kind, e.cause)
}

func (e *FormError) Unwrap() error { return e.cause }

func newFormError(kind grammar.Kind, tool string, err error) error {
	e := &FormError{Kind: kind, Tool: tool, cause: err}
	var s *schema.Error
	if errors.As(err, &s) {
		e.Keyword, e.Where = s.Keyword, s.Where
	}
	return e
}

// wanted is a demand as one form, how its answers are read, and what it was made of.
type wanted struct {
	form     Form // no Kind: nothing is demanded
	read     Dialects
	optional bool // if it cannot be had the answer is free
	kind     grammar.Kind
	tools    []calls.Tool
	assured  dialect.Assured
}

// wanted puts reasoning, calls and content together.
func (m *Model) wanted(r *Request, d Demand) (w wanted, err error) {
	if d.Form.Kind == 0 && r.Tools == nil {
		return w, nil
	}
	w.read = r.Dialects.resolve(m.Dialects)
	w.kind = d.Form.Kind
	o := calls.Options{Tool: w.read.Tool, Reasoning: w.read.Reasoning, Mode: d.Call, Name: d.Name, Parallel: !d.OneCall, Token: m.tokenID}
	if m.tok != nil {
		if o.PromptOpen, err = m.opens(o.Reasoning, r.IDs); err != nil {
			return w, err
		}
	}
	if o.Tools, err = readTools(r.Tools); err != nil {
		return w, err
	}
	w.tools = o.Tools
	own := o.Tool != "" && calls.Dialect(o.Tool) == o.Tool
	switch {
	case d.Call != CallAuto:
		o.Parallel = o.Parallel && own && d.Call == CallRequired // a model that was not taught calls knows no end of them
		w.read.Tool = o.Dialect()
		return w, w.calls(o)
	case d.Form.Kind != 0 && len(o.Tools) > 0 && own:
		return w, w.either(o, d.Form)
	case d.Form.Kind != 0:
		return w, w.content(o, d.Form)
	case !own || len(o.Tools) == 0:
		return w, nil
	}
	w.optional = !d.Strict
	return w, w.calls(o)
}

// tokenID is a token by its text.
func (m *Model) tokenID(text string) (int32, bool) {
	if m.tok == nil {
		return 0, false
	}
	id, ok := m.tok.ID(text)
	return id, ok && int(id) < m.model.Layout.Vocab
}

// calls demands calls of tools, or of an answer that begins one that it be one.
func (w *wanted) calls(o calls.Options) error {
	f, err := calls.Format(o)
	if err != nil {
		return newFormError(FormStructuralTag, "", err)
	}
	if f != nil {
		w.form, w.assured = Form{Kind: FormStructuralTag, Format: f, Key: calls.Key(o)}, o.Assured()
	}
	return nil
}

// content demands a form, which reasoning may stand before.
func (w *wanted) content(o calls.Options, form Form) error {
	if o.Reasoning == "" || o.Reasoning == NoDialect {
		w.form = form
		return nil
	}
	return w.reasoned(o, form, grammar.Leaf(form))
}

// either demands calls or a form.
func (w *wanted) either(o calls.Options, form Form) error {
	o.Then = grammar.Leaf(form)
	f, err := calls.Format(o)
	return w.whole(o, form, f, err)
}

func (w *wanted) reasoned(o calls.Options, form Form, content grammar.Format) error {
	f, err := calls.Reasoned(o, content)
	return w.whole(o, form, f, err)
}

// whole demands what a form of content became.
func (w *wanted) whole(o calls.Options, form Form, f grammar.Format, err error) error {
	if err != nil {
		return newFormError(form.Kind, "", err)
	}
	w.form = Form{Kind: FormStructuralTag, Format: f, Schema: form.Schema}
	if own, key := form.Hash(), calls.Key(o); own != "" && key != "" {
		w.form.Key = key + own
	}
	return nil
}

// refusal finds out what of a demand cannot be met.
func (w *wanted) refusal(ctx context.Context, cache *grammar.Cache, err error) error {
	for _, t := range w.tools {
		if len(t.Schema) == 0 {
			continue
		}
		kept, err := cache.Get(ctx, Form{Kind: FormJSONSchema, Text: string(t.Schema)})
		if err != nil {
			return newFormError(FormJSONSchema, t.Name, err)
		}
		kept.Close()
	}
	return newFormError(cmp.Or(w.kind, FormStructuralTag), "", err)
}

// readTools reads a request's tools.
func readTools(raw json.RawMessage) ([]calls.Tool, error) {
	if raw == nil {
		return nil, nil
	}
	type tool struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
		Function   *tool           `json:"function"`
	}
	var list []tool
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("the tools: %w", err)
	}
	all := make([]calls.Tool, len(list))
	for i, t := range list {
		if t.Function != nil {
			t = *t.Function
		}
		all[i] = calls.Tool{Name: t.Name, Schema: t.Parameters}
		if string(t.Parameters) == "null" {
			all[i].Schema = nil
		}
	}
	return all, nil
}
