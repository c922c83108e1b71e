package grammar

import (
	"testing"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/tokenizer"
)

// TestMasksOfARealVocabulary compares masks with what can be accepted, at every few tokens of answers and
// for every few tokens of the vocabulary.
func TestMasksOfARealVocabulary(t *testing.T) {
	tok, vocab := realVocabulary(t)
	cases := []struct {
		name, text string
		source     Source
	}{
		{"bounded", `{"a":"some text of words","b":["x y","äöü 中文 words"],"c":12}`, Source{Kind: JSONSchema, Text: `{"type":"object","properties":{
			"a":{"type":"string","minLength":12,"maxLength":24},"b":{"type":"array","items":{"type":"string","maxLength":40},"maxItems":2},
			"c":{"type":"integer","minimum":3,"maximum":1200}},"required":["a","b","c"],"additionalProperties":false}`}},
		{"pattern", `["ab-12","2026-03-04"]`, Source{Kind: JSONSchema, Text: `{"type":"array","prefixItems":[{"type":"string","pattern":"^[a-z]{1,8}-[0-9]+$"},{"type":"string","format":"date"}]}`}},
		{"formats", `["https://www.example.com/words?q=1","jane.doe@example.com","www.example.com"]`, Source{Kind: JSONSchema, Text: `{"type":"array","prefixItems":[
			{"type":"string","format":"uri","maxLength":60},{"type":"string","format":"email"},{"type":"string","format":"hostname"}]}`}},
		{"gbnf", `{"k": [1, {"x": "y\n"}, true]}`, Source{Kind: GBNF, Text: llamaJSON}},
		{"left", "a+(bb+a)*c", Source{Kind: GBNF, Text: `root ::= root [+*] term | term` + "\n" + `term ::= [a-z]+ | "(" root ")"`}},
		{"tags", "Hi <f=a>12</f> there", Source{Kind: StructuralTag, Format: Triggered{Triggers: []string{"<f="},
			Tags: []Tag{{Literal("<f=a>"), Leaf{Kind: Regex, Text: `\d{1,30}`}, []Format{Literal("</f>")}}}}}},
		{"counted", "some words here, and 5", Source{Kind: GBNF, Text: `root ::= ([a-z]{1,12} (" " | ", ")){2,6} [0-9]{1,40}`}},
	}
	for n, c := range cases {
		con, err := Compile(c.source, vocab, cfg.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.Encode(nil, c.text, tokenizer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := con.Matcher()
		mask := make([]uint64, vocab.Words())
		for i, id := range ids {
			m.Mask(mask)
			for id := int32((i + n) % 29); id < int32(vocab.Size()); id += 29 {
				text, ok := vocab.text(id)
				want := ok && m.AcceptBytes(text) == nil
				if want {
					m.Rollback(1)
				}
				if got := mask[id/64]>>(id%64)&1 != 0; got != want && !vocab.Control(id) {
					t.Fatalf("%s: token %d of %q: %q may come: %v, want %v", c.name, i, c.text, text, got, want)
				}
			}
			if mask[id/64]>>(id%64)&1 == 0 {
				t.Fatalf("%s: token %d of %q is not in the mask", c.name, i, c.text)
			}
			if err := m.Accept(id); err != nil {
				t.Fatal(err)
			}
		}
		if !m.MayEnd() {
			t.Errorf("%s: %q is not complete", c.name, c.text)
		}
	}
}
