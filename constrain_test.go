package spillway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/calls"
	"github.com/spillway/spillway/internal/tokenizer"
)

const personSchema = `{"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":0,"maximum":150},` +
	`"kind":{"enum":["a very long kind of cat","a very long kind of dog"]}},"required":["name","age","kind"],"additionalProperties":false}`

const addTools = `[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},` +
	`"required":["a","b"],"additionalProperties":false}}},{"type":"function","function":{"name":"now","parameters":null}}]`

// demands are one of each kind, and what their answers look like.
var demands = []struct {
	demand Demand
	tools  string
	looks  string
}{
	{demand: Demand{Form: Form{Kind: FormJSONSchema, Text: personSchema}}, looks: `^\{"name":"([^"\\]|\\.)*","age":\d+,"kind":"a very long kind of (cat|dog)"\}$`},
	{demand: Demand{Form: Form{Kind: FormRegex, Text: `(cat|dog)s{3,20} [0-9]{4}`}}, looks: `^(cat|dog)s{3,20} [0-9]{4}$`},
	{demand: Demand{Form: Form{Kind: FormChoice, Choices: []string{"yes, by all means", "yes, but not now", "no"}}}, looks: `^(yes, by all means|yes, but not now|no)$`},
	{demand: Demand{Form: Form{Kind: FormGBNF, Text: "root ::= \"[\" n (\", \" n){2,4} \"]\"\nn ::= [0-9]{1,3}"}}, looks: `^\[\d+(, \d+){2,4}\]$`},
	{demand: Demand{Form: Form{Kind: FormLark, Text: "start: \"<\" /[a-c]+é/ \">\""}}, looks: `^<[a-c]+é>$`},
	{demand: Demand{Call: CallRequired}, tools: addTools, looks: `^<tool_call>\n\{"name": "(add|now)", "arguments": \{[^}]*\}+\n</tool_call>$`},
	{demand: Demand{Call: CallNamed, Name: "add"}, tools: addTools, looks: `^<tool_call>\n\{"name": "add", "arguments": \{"a":-?\d+,"b":-?\d+\}\}\n</tool_call>$`},
}

// limited is the i-th of many requests, most of them held to something, and what holds it.
func limited(t *testing.T, m *Model, i int) (Request, *Limit) {
	t.Helper()
	r := Request{Prompt: fmt.Sprintf("%s And %d more.", story, i%4), MaxTokens: 70, Sampling: &Sampling{Temperature: float32(i%3) / 2, Seed: uint64(i)}, Priority: i % 2}
	n := i % (len(demands) + 1)
	var d Demand
	if n < len(demands) {
		d = demands[n].demand
		if demands[n].tools != "" {
			r.Tools = json.RawMessage(demands[n].tools)
		}
	}
	var err error
	if r.IDs, err = m.Tokens(r); err != nil {
		t.Fatal(err)
	}
	limit, err := m.Constrain(context.Background(), &r, d)
	if err != nil {
		t.Fatal(err)
	}
	r.Constraint = limit.Constraint()
	return r, limit
}

// Answers are what was demanded, or end in the midst of it at the bound of tokens.
func TestAnswersMeetDemands(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 2, Shared: true})
	whole := 0
	for i := range 3 * (len(demands) + 1) {
		r, limit := limited(t, m, i)
		a := ask(t, m, r, nil)
		limit.Close()
		n := i % (len(demands) + 1)
		if n == len(demands) {
			continue
		}
		fits := regexp.MustCompile(demands[n].looks).MatchString(a.Text)
		if fits != (a.FinishReason == FinishStop) && !(fits && len(a.IDs) == r.MaxTokens) {
			t.Errorf("%s at %q, which should be %s", a.FinishReason, a.Text, demands[n].looks)
		}
		if fits {
			whole++
		}
	}
	if 2*whole < 3*len(demands) {
		t.Errorf("%d answers came to their end", whole)
	}
	if s := m.Stats().Constraints; s.Compiled != int64(len(demands)) || s.CacheHits != int64(2*len(demands)) || s.Forced == 0 || s.Masks == 0 || s.MaskTime <= 0 {
		t.Errorf("%+v", s)
	}
}

// Requests that are held to something give the same tokens alone and among others, with their prompts in the cache or not.
func TestConstrainedAmongOthers(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 6, Shared: true})
	n := 3 * (len(demands) + 1)
	want := make([]string, n)
	for i := range n {
		r, limit := limited(t, m, i)
		r.LogProbs = true // each token is chosen from its logits, also where there is but one
		a, err := m.Generate(context.Background(), r, nil)
		want[i] = fmt.Sprint(a.IDs, a.FinishReason, err)
		limit.Close()
	}
	for round := range uint64(2) {
		before := m.Stats().Constraints.Forced
		var wg sync.WaitGroup
		for _, i := range rand.New(rand.NewPCG(round, 1)).Perm(n) {
			r, limit := limited(t, m, i)
			wg.Go(func() {
				defer limit.Close()
				a, err := m.Generate(context.Background(), r, nil)
				if got := fmt.Sprint(a.IDs, a.FinishReason, err); got != want[i] {
					t.Errorf("round %d, request %d: %s, alone and without forced tokens it was %s", round, i, got, want[i])
				}
			})
		}
		wg.Wait()
		if m.Stats().Constraints.Forced == before {
			t.Error("no token was forced")
		}
	}
	if s := m.Stats(); s.PrefixHit == 0 {
		t.Errorf("%+v", s)
	}
}

// A request that is held to something gives way in the midst of its answer, and has the answer that it has alone.
func TestConstrainedPreempted(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 1, Shared: true})
	high := Request{Prompt: "What is the opposite of hot?", MaxTokens: 10, Sampling: &Sampling{}}
	for i, want := range []string{"", ""} {
		low, limit := limited(t, m, 8*i+1)
		low.Priority = 1
		want = strings.Join([]string{want, ask(t, m, low, nil).Text}, "")
		low.Constraint = limit.Constraint()
		other := make(chan error, 1)
		n := 0
		low.Logits = func(int, []float32) {
			if n++; n != 3 {
				return
			}
			go func() {
				_, err := m.Generate(context.Background(), high, nil)
				other <- err
			}()
			for m.Stats().Waiting == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		if got := ask(t, m, low, nil).Text; got != want {
			t.Errorf("%q, alone it was %q", got, want)
		}
		if err := <-other; err != nil || m.Stats().Preempted != int64(i+1) {
			t.Errorf("%v, %d times somebody gave way", err, m.Stats().Preempted)
		}
		limit.Close()
	}
}

// Stop texts end constrained answers, and ends that must wait do not.
func TestConstrainedEnds(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 1})
	demand := func(r *Request, f Form) *Limit {
		var err error
		if r.IDs, err = m.Tokens(*r); err != nil {
			t.Fatal(err)
		}
		limit, err := m.Constrain(context.Background(), r, Demand{Form: f})
		if err != nil {
			t.Fatal(err)
		}
		r.Constraint = limit.Constraint()
		return limit
	}
	r := Request{Prompt: story, MaxTokens: 60, Stop: []string{`"age`}}
	limit := demand(&r, Form{Kind: FormJSONSchema, Text: personSchema})
	if a := ask(t, m, r, nil); a.StopSequence != `"age` || !strings.HasPrefix(a.Text, `{"name":"`) || strings.Contains(a.Text, "age") {
		t.Errorf("%q", a.Text)
	}
	limit.Close()
	r = Request{Prompt: story, MaxTokens: 60, MinTokens: 30} // the form is stronger
	limit = demand(&r, Form{Kind: FormChoice, Choices: []string{"no"}})
	if a := ask(t, m, r, nil); a.Text != "no" || a.FinishReason != FinishStop {
		t.Errorf("%q, %s", a.Text, a.FinishReason)
	}
	r.IgnoreEnd, r.Constraint = true, limit.Constraint()
	if a := ask(t, m, r, nil); a.Text != "no" || a.FinishReason != FinishStop {
		t.Errorf("without ends: %q, %s", a.Text, a.FinishReason)
	}
	limit.Close()
}

func TestConstrainRefuses(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 1})
	tools := `[{"type":"function","function":{"name":"ok"}},{"type":"function","function":{"name":"bad","parameters":{"type":"object","properties":{"x":{"pattern":"(?<=a)b"}}}}}]`
	for _, c := range []struct {
		d                    Demand
		tools                string
		tool, keyword, where string
	}{
		{d: Demand{Form: Form{Kind: FormJSONSchema, Text: `{"properties":{"a":{"type":"strnig"}}}`}}, keyword: "type", where: "#/properties/a"},
		{d: Demand{Form: Form{Kind: FormJSONSchema, Text: `{`}}},
		{d: Demand{Form: Form{Kind: FormRegex, Text: `(`}}},
		{d: Demand{Form: Form{Kind: FormChoice}}},
		{d: Demand{Form: Form{Kind: FormStructuralTag, Text: `{"type":"poem"}`}}},
		{d: Demand{Call: CallRequired}, tools: tools, tool: "bad", keyword: "pattern", where: "#/properties/x"},
		{d: Demand{Call: CallNamed, Name: "none"}, tools: tools},
	} {
		r := Request{IDs: []int32{1}}
		if c.tools != "" {
			r.Tools = json.RawMessage(c.tools)
		}
		_, err := m.Constrain(context.Background(), &r, c.d)
		var e *FormError
		if !errors.As(err, &e) || e.Tool != c.tool || e.Keyword != c.keyword || e.Where != c.where {
			t.Errorf("%+v: %+v, %v", c.d, e, err)
		}
	}
	r := Request{IDs: []int32{1}, Tools: json.RawMessage(tools)} // calls are free, as nobody asked for more
	if limit, err := m.Constrain(context.Background(), &r, Demand{}); err != nil || limit.Constraint() != nil {
		t.Errorf("%v", err)
	}
	if s := m.Stats().Constraints; s.Refused == 0 {
		t.Errorf("%+v", s)
	}
}

// What a model's forms take is leased, and given back; where nothing is left there is a clear error.
func TestConstrainLeases(t *testing.T) {
	rt := newRuntime(t, 200<<20)
	release, err := rt.SetAside(AsideBytes(rt.Memory(), 4096))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.SetAside(1); err == nil {
		t.Error("set aside twice")
	}
	m, err := rt.OpenEmbedded(context.Background(), ModelOptions{Context: 256, Sequences: 1})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rt.Reserve(rt.Ledger().Free(), "everything")
	if err != nil {
		t.Fatal(err)
	}
	form := func(text string) (*Limit, error) {
		return m.Constrain(context.Background(), &Request{IDs: []int32{1}}, Demand{Form: Form{Kind: FormJSONSchema, Text: text}})
	}
	first, err := form(personSchema)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	second := Demand{Form: Form{Kind: FormJSONSchema, Text: `{"type":"string","description":"` + strings.Repeat("x", 200<<10) + `"}`}}
	if limit, err := m.Constrain(ctx, &Request{IDs: []int32{1}}, second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, %v; it should wait for the first", limit, err)
	}
	first.Close()
	var full *NoRoomError
	second.Form.Text = `"` + strings.Repeat("x", 2<<20) + `"`
	if _, err := m.Constrain(context.Background(), &Request{IDs: []int32{1}}, second); !errors.As(err, &full) {
		t.Errorf("%v", err)
	}
	all()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	release()
	if used := rt.Ledger().Used; used != 0 {
		t.Errorf("%d bytes are still leased", used)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

// Reasoning comes first, and the form holds what follows it.
func TestReasoningThenForm(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 1})
	r := Request{Prompt: story, MaxTokens: 200, Read: true, Dialects: Dialects{Tool: NoDialect, Reasoning: "qwen3"}, Sampling: &Sampling{Temperature: 1, Seed: 2}}
	var err error
	if r.IDs, err = m.Tokens(r); err != nil {
		t.Fatal(err)
	}
	think, err := m.tok.Encode(nil, "<think>\n", tokenizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.IDs = slices.Concat(r.IDs, think)
	limit, err := m.Constrain(context.Background(), &r, Demand{Form: Form{Kind: FormChoice, Choices: []string{"yes", "no"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer limit.Close()
	r.Constraint = limit.Constraint()
	for _, piece := range []string{"Hm, well.", "</think>", "\n"} { // the model itself knows no reasoning
		ids, err := m.tok.Encode(nil, piece, tokenizer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if err := r.Constraint.Accept(id); err != nil {
				t.Fatal(err)
			}
		}
		r.IDs = append(r.IDs, ids...)
	}
	if a := ask(t, m, r, nil); a.Text != "yes" && a.Text != "no" {
		t.Errorf("%q", a.Text)
	}
}

// Options of the kind calls know which tools there are.
func TestReadTools(t *testing.T) {
	got, err := readTools(json.RawMessage(`[{"type":"function","function":{"name":"a","parameters":{"type":"object"}}},{"name":"b","parameters":null}]`))
	want := []calls.Tool{{Name: "a", Schema: []byte(`{"type":"object"}`)}, {Name: "b"}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := readTools(json.RawMessage(`{}`)); err == nil {
		t.Error("an object is a list")
	}
}
