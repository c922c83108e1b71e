package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// scanned are the published patterns that have a scanner, by name.
var scanned = map[string]string{
	"gpt2": patternGPT2, "llama3": patternLlama3, "qwen2": patternQwen2, "qwen35": patternQwen35, "plain": patternPlain,
	"minicpm5": patternMiniCPM, "o200k": patternO200k, "tekken": patternTekken, "deepseek": patternDeepSeek,
	"han-kana": patternHanKana, "digit": patternDigit, "digits3": patternDigits3, "digits": patternDigits,
}

// interesting are runes that the patterns tell apart.
var interesting = []rune("aAzZéÉǅʰªßſ中あア가١٣½Ⅷ 0123456789'''sStTrReEvVmMlLdD.,!?/$+=<>^`|_-()[]{}\"\\\t\n\r\v\f\u0085\u00a0\u2003\u2028\u3000\u200b\u00ad\u0301\u0345\u0903\u20dd\U0001f600\U0001d7d8\ufffd\x00\x7f")

// randomText is a text of runs of similar runes, with spaces and line breaks between.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) {
		c := interesting[r.IntN(len(interesting))]
		if r.IntN(8) == 0 {
			c = rune(r.IntN(unicode.MaxRune + 1))
			if c >= 0xd800 && c < 0xe000 {
				c = ' '
			}
		}
		for range 1 + r.IntN(4) {
			b.WriteRune(c)
		}
		if r.IntN(3) == 0 {
			b.WriteString([]string{" ", "  ", "\n", "\r\n", "'s", "'LL", "'ve", "/"}[r.IntN(8)])
		}
	}
	return b.String()
}

func piecesOf(t testing.TB, s splitter, text string) []string {
	t.Helper()
	var out []string
	if err := s.split(text, func(piece string) error { out = append(out, piece); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// longS is where regexp2 differs from the engine that the tokenizers were made with: Oniguruma folds
// the long s to s.
const longS = "ſ"

func TestScannersAgainstPatterns(t *testing.T) {
	for name, pattern := range scanned {
		t.Run(name, func(t *testing.T) {
			s := scannerFor(pattern)
			if s == nil {
				t.Fatalf("no scanner for %q", pattern)
			}
			f, err := compile(pattern)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range 4000 {
				text := randomText(r)
				if strings.Contains(text, "'"+longS) {
					continue
				}
				got, want := piecesOf(t, isolate{s}, text), piecesOf(t, separate{finder: f}, text)
				if !slices.Equal(got, want) {
					t.Fatalf("%q is cut into %q, the pattern gives %q", text, got, want)
				}
			}
		})
	}
}

func TestLongSFolds(t *testing.T) {
	got := piecesOf(t, isolate{scannerFor(patternLlama3)}, "it'ſ so")
	if want := []string{"it", "'ſ", " so"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSplitBehaviours follows the examples of Hugging Face's documentation of Split.
func TestSplitBehaviours(t *testing.T) {
	for b, want := range map[behaviour][]string{
		removed:            {"the", "final", "countdown"},
		isolated:           {"the", "-", "final", "-", "-", "countdown"},
		mergedWithPrevious: {"the-", "final-", "-", "countdown"},
		mergedWithNext:     {"the", "-final", "-", "-countdown"},
		contiguous:         {"the", "-", "final", "--", "countdown"},
	} {
		got := piecesOf(t, separate{finder: literal{"-"}, behaviour: b}, "the-final--countdown")
		if !slices.Equal(got, want) {
			t.Errorf("behaviour %d: got %q, want %q", b, got, want)
		}
	}
}

func TestEveryPreTokenizerLoads(t *testing.T) {
	for _, name := range []string{"", "default", "gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35", "gpt-4o", "tekken", "deepseek-v3",
		"deepseek-llm", "deepseek-coder", "falcon", "bloom", "viking", "seed-coder", "bailingmoe", "exaone-moe", "jais-2", "tiny_aya", "laguna",
		"minicpm5", "ufakzeka", "glm4", "chatglm-bpe", "dbrx", "granite-embed-multi-97m"} {
		how, ok := preFor(name)
		if !ok {
			t.Errorf("%q is not known", name)
		}
		for _, pattern := range how.patterns {
			s, err := splitterFor(pattern)
			if err != nil {
				t.Errorf("%q: %v", name, err)
				continue
			}
			text := "Hello, wörld!  123456 don't 中文\n\nx = a[1];\t'quoted'"
			if got := strings.Join(piecesOf(t, s, text), ""); got != text {
				t.Errorf("%q loses text: %q", name, got)
			}
		}
	}
	if _, ok := preFor("no-such"); ok {
		t.Error("an unknown name is known")
	}
}
