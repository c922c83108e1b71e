package openai

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway"
)

// logProbs are the probabilities of an answer's tokens.
type logProbs struct {
	Content []tokenLogProb `json:"content"`
	Refusal []tokenLogProb `json:"refusal"`
}

type tokenLogProb struct {
	topLogProb
	Top []topLogProb `json:"top_logprobs"`
}

type topLogProb struct {
	Token   string  `json:"token"`
	LogProb float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// least stands for tokens that cannot come, as OpenAI has it: JSON has no -Inf.
const least = -9999

func finite(p float32) float32 { return max(p, least) }

func (h held) logProb(id int32, bytes []byte, p float32) topLogProb {
	list := make([]int, len(bytes))
	for i, b := range bytes {
		list[i] = int(b)
	}
	return topLogProb{h.tokenText(id, bytes), finite(p), list}
}

// tokenText is a token's text; a control token's is its name.
func (h held) tokenText(id int32, bytes []byte) string {
	if len(bytes) == 0 {
		if tok, err := h.Tokenizer(); err == nil {
			return tok.Token(id)
		}
	}
	return strings.ToValidUTF8(string(bytes), "\uFFFD")
}

func (h held) logProbsOf(tokens []spillway.Token, top int) []tokenLogProb {
	out := make([]tokenLogProb, len(tokens))
	for i, t := range tokens {
		out[i] = tokenLogProb{h.logProb(t.ID, t.Bytes, t.LogProb), []topLogProb{}}
		for _, p := range t.Top[:min(top, len(t.Top))] {
			out[i].Top = append(out[i].Top, h.logProb(p.ID, p.Bytes, p.LogProb))
		}
	}
	return out
}

// textLogProbs are the probabilities of the older API.
type textLogProbs struct {
	Tokens  []string              `json:"tokens"`
	Tok     []*float32            `json:"token_logprobs"`
	Top     []*map[string]float32 `json:"top_logprobs"`
	Offsets []int                 `json:"text_offset"`
}

// keyText is a token's text as a name that is no other token's: bytes that are no text are spelled.
func (h held) keyText(id int32, b []byte) string {
	if len(b) > 0 && !utf8.Valid(b) {
		var all strings.Builder
		all.WriteString("bytes:")
		for _, c := range b {
			all.WriteString(`\x` + strconv.FormatUint(uint64(c)|0x100, 16)[1:])
		}
		return all.String()
	}
	return h.tokenText(id, b)
}

// add appends tokens; bytes counts the text before them and after. The first token of a prompt has no
// probability.
func (l *textLogProbs) add(h held, tokens []spillway.Token, top int, prompt bool, text *textOffset) {
	for i, t := range tokens {
		l.Tokens = append(l.Tokens, h.keyText(t.ID, t.Bytes))
		l.Offsets = append(l.Offsets, text.next(t.Bytes))
		if prompt && i == 0 {
			l.Tok, l.Top = append(l.Tok, nil), append(l.Top, nil)
			continue
		}
		p := finite(t.LogProb)
		l.Tok = append(l.Tok, &p)
		names := map[string]float32{}
		for _, q := range t.Top[:min(top, len(t.Top))] {
			names[h.keyText(q.ID, q.Bytes)] = finite(q.LogProb)
		}
		names[h.keyText(t.ID, t.Bytes)] = p
		l.Top = append(l.Top, &names)
	}
}

// A textOffset counts the characters of a text that comes in tokens.
type textOffset struct{ chars int }

// next returns where a token begins, and goes on by it.
func (o *textOffset) next(b []byte) int {
	at := o.chars
	for _, c := range b {
		if utf8.RuneStart(c) {
			o.chars++
		}
	}
	return at
}

// promptLogProb is a token of vLLM's prompt_logprobs.
type promptLogProb struct {
	LogProb float32 `json:"logprob"`
	Rank    *int    `json:"rank"` // null: behind those that are listed
	Token   string  `json:"decoded_token"`
}

// promptLogProbs are the prompt's probabilities as vLLM has them: for each token itself and the likeliest ones.
func (h held) promptLogProbs(a *spillway.Answer, top int) any {
	all := make([]map[string]promptLogProb, len(a.PromptTokens))
	for i, t := range a.PromptTokens {
		if i == 0 {
			continue
		}
		names := map[string]promptLogProb{}
		names[strconv.Itoa(int(t.ID))] = promptLogProb{finite(t.LogProb), nil, h.tokenText(t.ID, t.Bytes)}
		for k, q := range t.Top {
			if rank := k + 1; k < top || q.ID == t.ID {
				names[strconv.Itoa(int(q.ID))] = promptLogProb{finite(q.LogProb), &rank, h.tokenText(q.ID, q.Bytes)}
			}
		}
		all[i] = names
	}
	return all
}
