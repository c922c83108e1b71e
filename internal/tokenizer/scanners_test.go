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
	"gpt2": patternGPT2, "gpt2-short": patternGPT2Short, "llama3": patternLlama3, "qwen2": patternQwen2, "qwen35": patternQwen35,
	"plain": patternPlain, "minicpm5": patternMiniCPM, "o200k": patternO200k, "o200k-digit": patternO200kDigit, "tekken": patternTekken,
	"deepseek": patternDeepSeek, "spark": patternSpark, "kimi": patternKimi, "han-kana": patternHanKana, "digit": patternDigit,
	"digits3": patternDigits3, "digits": patternDigits, "seed-coder": patternSeedCoder, "seed-oss": patternSeedOSS,
	"bailing": patternBailing, "bailing-possessive": patternBailingPossessive, "exaone-moe": patternExaoneMoE,
	"three-digits": patternThreeDigits, "falcon-punct": patternFalconPunct, "default-punct": patternDefaultPunct,
	"chameleon-punct": patternChameleonPunct, "sentinel": patternSentinel, "image": patternImage, "indent": patternIndent,
	"break": patternBreak, "line": patternLine, "spaced-letters": patternSpacedLetters, "spaced-punct": patternSpacedPunct,
	"deepseek-llm": patternDeepSeekLLM, "deepseek-llm-punct": patternDeepSeekLLMPunct, "cjk": patternCJK,
	"afmoe-cjk": patternAFMoECJK, "bloom": patternBloom, "youtu-cjk": patternYoutuCJK,
}

// cut are the published patterns that have a splitter of their own.
var cut = map[string]string{
	"trailing": patternTrailing, "jais2": patternJais2, "aya-digits": patternAyaDigits, "number-groups": patternNumberGroups,
	"super-groups": patternSuperGroups,
}

// reference compiles a pattern with regexp2, which writes set differences in another way and has no
// possessive quantifiers; where we use them, greedy ones match the same.
func reference(t *testing.T, pattern string) splitter {
	t.Helper()
	f, err := compile(strings.NewReplacer(`&&[^\p{Han}]]`, `-[\p{Han}]]`, "?+", "?", "++", "+").Replace(pattern))
	if err != nil {
		t.Fatal(err)
	}
	return separate{finder: f}
}

// interesting are runes that the patterns tell apart.
var interesting = []rune("aAzZéÉǅʰªßſ中あア가١٣½Ⅷ 0123456789'''sStTrReEvVmMlLdD.,!?/$+=<>^`|_-()[]{}\"\\\t\n\r\v\f\u0085\u00a0\u2003\u2028\u3000\u200b\u00ad\u0301\u0345\u0903\u20dd\u3007\u3005\u2e80\u2fd5\uac00\u3131\u3105\uff01\u2018\u3002\u0964\u0e01\u0660\u1e9e\u212a\ufb06\U0001f600\U0001d7d8\ufffd\x00\x7f")

var common = []string{" ", "  ", "\n", "\r\n", "\n\n", "'s", "'LL", "'ve", "'RE", "'D", "'M", "/", "123", "12", "<sentinel:12>", "IMGIMGABZ", "IMGIMGABCDEZ"}

// randomText is a text of runs of similar runes, with spaces and line breaks between.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) {
		c := interesting[r.IntN(len(interesting))]
		if r.IntN(8) == 0 {
			c = rune(r.IntN(unicode.MaxRune + 1))
			if c >= 0xd800 && c < 0xe000 || lateClass(c) != 0 { // what regexp2 does not know yet
				c = ' '
			}
		}
		for range 1 + r.IntN(4) {
			b.WriteRune(c)
		}
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			b.WriteString(common[r.IntN(len(common))])
		case 4:
			b.WriteString(strings.Repeat([]string{" ", "\t", "\u00a0", "a b ", "7"}[r.IntN(5)], r.IntN(40)))
		case 5:
			b.WriteByte(byte(0x80 + r.IntN(0x80)))
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
			compare(t, isolate{s}, reference(t, pattern))
		})
	}
}

func TestCuttersAgainstPatterns(t *testing.T) {
	for name, pattern := range cut {
		t.Run(name, func(t *testing.T) {
			s := cutterFor(pattern)
			if s == nil {
				t.Fatalf("no splitter for %q", pattern)
			}
			compare(t, s, reference(t, pattern))
		})
	}
}

// oddWord reports whether engines differ on r being part of a word.
func oddWord(r rune) bool {
	return isWord(r) && !unicode.In(r, unicode.L, unicode.Mn, unicode.Nd, unicode.Pc)
}

func compare(t *testing.T, ours, reference splitter) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		text := randomText(r)
		if strings.Contains(text, "'"+longS) {
			continue
		}
		if groups, ok := ours.(digitGroups); ok && groups.atWord && strings.ContainsFunc(text, oddWord) {
			continue
		}
		got, want := piecesOf(t, ours, text), piecesOf(t, reference, text)
		if !slices.Equal(got, want) {
			t.Fatalf("%q is cut into %q, the pattern gives %q", text, got, want)
		}
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

// preNames are the names that llama.cpp knows for byte-level BPE.
var preNames = strings.Fields(`default minicpm5 llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano
	deepseek-llm deepseek-coder deepseek-v3 spark2_5 youtu falcon mpt starcoder gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es
	jina-v2-de a.x-4.0 mellum modern-bert jais-2 jina-v1-en jina-v2-code roberta-bpe refact command-r qwen2 deepseek-r1-qwen kormo
	f2llmv2 qwen35 stablelm2 olmo dbrx smaug-bpe poro-chat chatglm-bpe glm4 glm5 viking jais tekken smollm codeshell bloom
	gpt3-finnish exaone exaone4 exaone-moe chameleon minerva-7b megrez gpt-4o llama4 kanana2 talkie granite-embed-multi-97m tiny_aya
	cohere2moe superbpe trillion granite-docling bailingmoe bailingmoe2 llada-moe seed-coder hunyuan hunyuan-dense hy_v4 joyai-llm
	kimi-k2 ufakzeka grok-2 afmoe laguna minimax-m2 solar-open mellum2 gemma4
	granite-embed-multi-311m sarvam-moe`)

// TestEveryPreTokenizer sees that each has scanners for all its stages, and that none loses text.
func TestEveryPreTokenizer(t *testing.T) {
	for _, name := range append(preNames, "") {
		how, ok := preFor(name)
		if !ok || len(how.patterns) == 0 {
			t.Errorf("%q is not known", name)
		}
		var all splitters
		for _, pattern := range how.patterns {
			s, err := splitterFor(pattern)
			if err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			if slow, ok := s.(separate); ok {
				t.Errorf("%q: no scanner for %q (%T)", name, pattern, slow.finder)
			}
			all = append(all, s)
		}
		text := "Hello, wörld!  123456 don't 中文\n\nx = a[1];\t'quoted'\xff   "
		if got := strings.Join(piecesOf(t, all, text), ""); got != text {
			t.Errorf("%q loses text: %q", name, got)
		}
	}
	if _, ok := preFor("no-such"); ok {
		t.Error("an unknown name is known")
	}
}
