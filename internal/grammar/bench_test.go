package grammar

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/tokenizer"
	"github.com/spillway/spillway/internal/vfs"
)

// realVocabulary is that of a tokenizer with 151,669 tokens.
func realVocabulary(t testing.TB) (*tokenizer.Tokenizer, *Vocabulary) {
	dir := testutil.Shared(t, "tokenizers/qwen3")
	v, err := loadReal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return v.tok, v.vocab
}

type loaded struct {
	tok   *tokenizer.Tokenizer
	vocab *Vocabulary
}

var (
	realOnce sync.Once
	realOne  loaded
	realErr  error
)

func loadReal(dir string) (loaded, error) {
	realOnce.Do(func() {
		realErr = func() error {
			tmp, err := os.MkdirTemp("", "vocabulary")
			if err != nil {
				return err
			}
			defer os.RemoveAll(tmp)
			if err := unzip(filepath.Join(dir, "tokenizer.json.gz"), filepath.Join(tmp, "tokenizer.json")); err != nil {
				return err
			}
			if realOne.tok, err = tokenizer.LoadPath(vfs.OS(), tmp, nil); err != nil {
				return err
			}
			end, _ := realOne.tok.ID("<|im_end|>")
			realOne.vocab, err = NewVocabulary(realOne.tok, []int32{end}, nil)
			return err
		}()
	})
	return realOne, realErr
}

func unzip(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// jsonGrammar is any JSON with white space of up to two spaces.
func jsonGrammar(b *cfg.Builder) cfg.Expr {
	value, ws := b.NewRule("value"), b.Repeat(b.Bytes(" "), 0, 2)
	hex := b.Alt(b.Byte('0', '9'), b.Byte('a', 'f'), b.Byte('A', 'F'))
	char := b.Alt(b.Runes([2]rune{0x20, 0x21}, [2]rune{0x23, 0x5b}, [2]rune{0x5d, 0x10ffff}),
		b.Seq(b.Bytes(`\`), b.Alt(b.Runes([2]rune{'"', '"'}, [2]rune{'\\', '\\'}, [2]rune{'/', '/'}, [2]rune{'b', 'b'},
			[2]rune{'f', 'f'}, [2]rune{'n', 'n'}, [2]rune{'r', 'r'}, [2]rune{'t', 't'}), b.Seq(b.Bytes("u"), b.Repeat(hex, 4, 4)))))
	str := b.Seq(b.Bytes(`"`), b.Repeat(char, 0, -1), b.Bytes(`"`))
	digits := b.Repeat(b.Byte('0', '9'), 1, -1)
	number := b.Seq(b.Opt(b.Bytes("-")), b.Alt(b.Bytes("0"), b.Seq(b.Byte('1', '9'), b.Repeat(b.Byte('0', '9'), 0, -1))),
		b.Opt(b.Seq(b.Bytes("."), digits)), b.Opt(b.Seq(b.Alt(b.Bytes("e"), b.Bytes("E")), b.Opt(b.Alt(b.Bytes("-"), b.Bytes("+"))), digits)))
	list := func(open, shut string, item cfg.Expr) cfg.Expr {
		return b.Seq(b.Bytes(open), ws, b.Opt(b.Seq(item, b.Repeat(b.Seq(ws, b.Bytes(","), ws, item), 0, -1), ws)), b.Bytes(shut))
	}
	b.Define(value, b.Alt(str, number, b.Bytes("true"), b.Bytes("false"), b.Bytes("null"),
		list("[", "]", b.Ref(value)), list("{", "}", b.Seq(str, ws, b.Bytes(":"), ws, b.Ref(value)))))
	return b.Ref(value)
}

const jsonText = `{"name": "Jürgen \"Jo\" Müller", "age": 42, "tags": ["alpha", "beta and gamma", "δ"], "address": {"street": "12 Long Lane, Springfield", "zip": "01234", "geo": [12.5, -3.25e10]}, "notes": "This is a longer text that an assistant might write into a field, with commas, and so on; it goes on for a while so that most of the tokens are inside a string body.", "active": true, "parent": null, "history": [{"at": "2026-01-02T03:04:05Z", "what": "created"}, {"at": "2026-02-03T04:05:06Z", "what": "changed the address of the customer"}]}`

func TestMaskSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: measures")
	}
	tok, vocab := realVocabulary(t)
	begin := time.Now()
	b := cfg.New(cfg.Limits{})
	g, err := b.Grammar(jsonGrammar(b))
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewConstraint(g, vocab)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("vocabulary %d bytes, %d nodes, compile %v", vocab.Bytes(), len(vocab.nodes), time.Since(begin))
	ids, err := tok.Encode(nil, jsonText, tokenizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mask := make([]uint64, vocab.Words())
	for round := range 3 {
		if os.Getenv("COLD") != "" {
			c.renew()
		}
		m := c.Matcher()
		var masks, accepts []time.Duration
		for _, id := range ids {
			start := time.Now()
			m.Mask(mask)
			masks = append(masks, time.Since(start))
			if mask[id/64]>>(id%64)&1 == 0 {
				t.Fatalf("token %d is not allowed", id)
			}
			start = time.Now()
			if err := m.Accept(id); err != nil {
				t.Fatal(err)
			}
			accepts = append(accepts, time.Since(start))
		}
		t.Logf("round %d: %d tokens; mask %s; accept %s", round, len(ids), summary(masks), summary(accepts))
	}
	t.Logf("%d locals, %d bytes, machine %d bytes", len(c.gen.allowed.parts), c.gen.allowed.bytes, c.gen.machine.Bytes())
}

func summary(all []time.Duration) string {
	slices.Sort(all)
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return "total " + sum.String() + " median " + all[len(all)/2].String() + " p95 " + all[len(all)*95/100].String() + " p99.9 " + all[len(all)*999/1000].String() + " max " + all[len(all)-1].String()
}

// llamaJSON is llama.cpp's grammars/json.gbnf.
const llamaJSON = `root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
`

func TestGrammarSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: measures")
	}
	tok, vocab := realVocabulary(t)
	begin := time.Now()
	if _, err := NewVocabulary(tok, vocab.ends, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("a vocabulary in %v", time.Since(begin))
	triggered := Source{Kind: StructuralTag, Format: Triggered{Triggers: []string{"<tool_call>"}, Tags: []Tag{{Literal("<tool_call>"),
		Leaf{Kind: JSONSchema, Text: `{"type":"object","properties":{"name":{"const":"f"},"arguments":{"type":"object"}},"required":["name","arguments"],"additionalProperties":false}`}, []Format{Literal("</tool_call>")}}}}}
	for _, c := range []struct {
		name, text string
		source     Source
	}{
		{"gbnf", strings.Replace(jsonText, "e10", "e12", 1), Source{Kind: GBNF, Text: llamaJSON}},
		{"object", strings.NewReplacer(": ", ":", ", ", ",").Replace(jsonText), Source{Kind: JSONObject}},
		{"tags", "Let me look that up for you. <b>Now</b>\n<tool_call>{\"name\":\"f\",\"arguments\":{\"q\":\"some words\"}}</tool_call>\nand more text", triggered},
	} {
		begin := time.Now()
		con, err := Compile(c.source, vocab, cfg.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		compile := time.Since(begin)
		ids, err := tok.Encode(nil, c.text, tokenizer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for round := range 2 {
			m := con.Matcher()
			mask := make([]uint64, vocab.Words())
			var masks []time.Duration
			for i, id := range ids {
				begin := time.Now()
				m.Mask(mask)
				masks = append(masks, time.Since(begin))
				if mask[id/64]>>(id%64)&1 == 0 {
					t.Fatalf("%s: token %d of %q is not in the mask", c.name, i, c.text)
				}
				if err := m.Accept(id); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%s, round %d: compile %v, %d tokens, masks %s, %d bytes", c.name, round, compile, len(ids), summary(masks), con.Bytes())
		}
	}
}

// BenchmarkCompile compiles the 300 schemas of schema's tests.
func BenchmarkCompile(b *testing.B) {
	text, err := os.ReadFile("schema/testdata/schemas.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	for b.Loop() {
		for _, one := range all {
			if _, err := CompileGrammar(Source{Kind: JSONSchema, Text: one}, nil, cfg.Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
