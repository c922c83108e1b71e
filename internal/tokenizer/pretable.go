package tokenizer

// pre is what the name in tokenizer.ggml.pre stands for. A GGUF file says nothing of normalization, so there
// is none, as in llama.cpp, even where the tokenizer.json that the file was made from has NFC.
type pre struct {
	patterns     []string // applied one after another, each within the pieces of the one before
	ignoreMerges bool
	addBOS       bool // if tokenizer.ggml.add_bos_token is missing
	raw          bool // tokens are text, with bytes as <0x0A>
}

// Published patterns of single models and of stages of pre-tokenizers; each has a scanner.
const (
	patternGPT2Short         = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)` // what it leaves out are single pieces
	patternFalconPunct       = "[\\p{P}\\$\\+<=>\\^~\\|`]+"
	patternDefaultPunct      = `[\p{P}\$\+<=>\^~\|]+`
	patternThreeDigits       = `[0-9][0-9][0-9]`
	patternBloom             = ` ?[^(\s|` + bloomRest + `)]+`
	patternCJK               = `[` + cjk + `]+`
	patternLine              = `[^\n]+|[\n]+`
	patternSeedCoder         = contractionsFold + `|` + modernHead + `\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternSeedOSS           = contractionsFold + `|` + modernHead + `\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternBailing           = `'(?i:[sdmt]|ll|ve|re)|` + modernHead + `\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	patternBailingPossessive = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	patternExaoneMoE         = contractionsFold + `|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
	patternJais2             = contractionsFold + `|` + modernHead + `\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`
	patternAyaDigits         = `\d{1,3}(?=(?:\d{3})*\b)`
	patternNumberGroups      = `\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))`
	patternSuperGroups       = `(?=(\d{3})+(?!\d))`
	patternBreak             = `[\r\n]`
	patternTrailing          = `\s+$`
	patternSpacedLetters     = `\s?\p{L}+`
	patternSpacedPunct       = `\s?\p{P}+`
	patternDeepSeekLLM       = `\s?[` + deepseekCased + `]+`
	patternDeepSeekLLMPunct  = `\s?[` + deepseekPunct + `]+`
	patternAFMoECJK          = `[` + afmoeCJK + `]+`
	patternYoutuCJK          = `[` + hangul + `]+|[` + cjkPunct + `]+|[` + bopomofo + `]+|` + patternHanKana
	patternSentinel          = `<sentinel:[0-9]+>`
	patternImage             = `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`
	patternIndent            = `([\t\n]|    |  )`
	patternChameleonPunct    = "[\\p{P}!-/:-@\\[-`{-~]"
)

// Sets of characters, as patterns write them between brackets.
const (
	bloomRest     = `.,!?…。，、।۔،`
	bloomStops    = `(|)` + bloomRest
	cjk           = `一-龥ࠀ-一가-퟿`
	afmoeCJK      = `一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ`
	deepseekPunct = `!-/:-~！-／：-～‘-‟　-。`
	hangul        = `가-힣ㄱ-ㆎ`
	cjkPunct      = `！…“”‘’—：；，、-〿︰-﹏`
	bopomofo      = `ㄅ-ㄯ`
)

// preFor returns the pre-tokenizer of a name in tokenizer.ggml.pre. Names are llama.cpp's.
func preFor(name string) (pre, bool) {
	switch name {
	case "", "default":
		return pre{patterns: []string{patternDefaultPunct, patternGPT2, patternDigits, patternThreeDigits}}, true
	case "gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum", "exaone4",
		"jais", "trillion", "granite-docling", "jina-v1-en", "jina-v2-code", "roberta-bpe", "olmo", "mpt", "modern-bert":
		return pre{patterns: []string{patternGPT2}}, true
	case "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2":
		return pre{patterns: []string{patternDigit, patternGPT2}}, true
	case "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano":
		return pre{patterns: []string{patternLlama3}, ignoreMerges: true, addBOS: true}, true
	case "dbrx", "smaug-bpe":
		return pre{patterns: []string{patternLlama3}}, true
	case "chatglm-bpe", "glm4", "glm5":
		return pre{patterns: []string{patternLlama3}, ignoreMerges: name != "chatglm-bpe"}, true
	case "qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2", "stablelm2", "hunyuan", "solar-open",
		"grok-2":
		return pre{patterns: []string{patternQwen2}}, true
	case "qwen35":
		return pre{patterns: []string{patternQwen35}}, true
	case "minicpm5":
		return pre{patterns: []string{patternDigits3, patternMiniCPM}, ignoreMerges: true}, true
	case "ufakzeka":
		return pre{patterns: []string{patternPlain}}, true
	case "gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2":
		return pre{patterns: []string{patternO200k}}, true
	case "granite-embed-multi-97m":
		return pre{patterns: []string{patternO200k}, ignoreMerges: true}, true
	case "tekken":
		return pre{patterns: []string{patternTekken}, ignoreMerges: true, addBOS: true}, true
	}
	return rarePre(name)
}

// rarePre are the pre-tokenizers of single models.
func rarePre(name string) (pre, bool) {
	switch name {
	case "deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4":
		return pre{patterns: []string{patternDigits3, patternHanKana, patternDeepSeek}}, true
	case "deepseek-llm":
		return pre{patterns: []string{patternBreak, patternDeepSeekLLM, patternDeepSeekLLMPunct, patternTrailing, patternCJK, patternDigits}}, true
	case "deepseek-coder":
		return pre{patterns: []string{patternBreak, patternSpacedLetters, patternSpacedPunct, patternCJK, patternDigit}}, true
	case "falcon":
		return pre{patterns: []string{patternFalconPunct, patternGPT2, patternThreeDigits}}, true
	case "poro-chat", "bloom", "gpt3-finnish":
		return pre{patterns: []string{patternBloom}}, true
	case "viking":
		return pre{patterns: []string{patternBloom, patternDigit}}, true
	case "seed-coder":
		return pre{patterns: []string{patternSeedCoder}}, true
	case "bailingmoe", "bailingmoe2", "llada-moe":
		return pre{patterns: []string{patternBailing}}, true
	case "exaone-moe":
		return pre{patterns: []string{patternExaoneMoE}}, true
	case "jais-2":
		return pre{patterns: []string{patternJais2}}, true
	case "tiny_aya", "cohere2moe":
		return pre{patterns: []string{patternAyaDigits, patternO200k}}, true
	case "spark2_5":
		return pre{patterns: []string{patternDigits3, patternHanKana, patternSpark, patternDigit}}, true
	case "youtu":
		return pre{patterns: []string{patternYoutuCJK, patternO200kDigit}, ignoreMerges: true}, true
	case "chameleon":
		return pre{patterns: []string{patternSentinel, patternImage, patternIndent, patternDigit, patternChameleonPunct, patternGPT2}, addBOS: true}, true
	case "superbpe":
		return pre{patterns: []string{patternDigits, patternSuperGroups}}, true
	case "kimi-k2":
		return pre{patterns: []string{patternKimi}}, true
	case "afmoe":
		return pre{patterns: []string{patternNumberGroups, patternAFMoECJK, patternDeepSeek}}, true
	case "gemma4", "granite-embed-multi-311m", "sarvam-moe":
		return pre{patterns: []string{patternLine}, addBOS: name == "gemma4", raw: true}, true
	case "laguna":
		return pre{patterns: []string{patternLine, patternQwen2}}, true
	}
	return pre{}, false
}

// deepseekCased are the letters of the second stage of DeepSeek LLM: cased ones, one range after another.
const deepseekCased = `A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃`
