package sample

import (
	"bytes"
	"slices"

	"github.com/spillway/spillway/internal/tokenizer"
)

// BadWords returns the sequences of tokens of texts that an answer must not contain: as they are, and
// after a space, as vLLM has it.
func BadWords(tok *tokenizer.Tokenizer, texts []string) ([][]int32, error) {
	var out [][]int32
	for _, text := range texts {
		if text == "" {
			return nil, &ParamError{"bad-word", "empty", "a text of one token at least"}
		}
		for _, t := range []string{text, " " + text} {
			ids, err := tok.Encode(nil, t, tokenizer.Options{})
			if err != nil {
				return nil, err
			}
			known := slices.ContainsFunc(out, func(o []int32) bool { return slices.Equal(o, ids) })
			if len(ids) > 0 && !known {
				out = append(out, ids)
			}
		}
	}
	return out, nil
}

// DefaultBreakers are the texts that break repetitions for DRY where the user names none, as in llama.cpp.
var DefaultBreakers = []string{"\n", ":", "\"", "*"}

// Breakers returns the sequences of tokens that break repetitions at texts: every token that contains
// one of them, and what a text becomes by itself, where that is several tokens.
func Breakers(tok *tokenizer.Tokenizer, texts []string) ([][]int32, error) {
	var out [][]int32
	for _, text := range texts {
		if text == "" {
			return nil, &ParamError{"dry-sequence-breaker", "empty", "a text of one token at least"}
		}
		ids, err := tok.Encode(nil, text, tokenizer.Options{})
		if err != nil {
			return nil, err
		}
		if len(ids) > 1 {
			out = append(out, ids)
		}
	}
	for id := range int32(tok.Size()) {
		b, err := tok.Bytes(id)
		if err != nil { // a hole in the vocabulary
			continue
		}
		if slices.ContainsFunc(texts, func(t string) bool { return bytes.Contains(b, []byte(t)) }) {
			out = append(out, []int32{id})
		}
	}
	return out, nil
}
