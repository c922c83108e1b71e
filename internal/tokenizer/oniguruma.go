package tokenizer

import "strings"

// Oniguruma's \w, wider than that of regexp2: what a pattern has between brackets, and what alone is in it too.
const (
	onigurumaWord  = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}Ⓐ-ⓩ🄰-🅉🅐-🅩🅰-🆉`
	onigurumaAlone = `²³¹¼-¾`
)

// fromOniguruma writes \w and \W of a pattern for Oniguruma as regexp2 has to see them. A \W between brackets
// stays: there is no such set.
func fromOniguruma(pattern string) string {
	if !strings.Contains(pattern, `\w`) && !strings.Contains(pattern, `\W`) {
		return pattern
	}
	var b strings.Builder
	bracket := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c != '\\' || i+1 == len(pattern) {
			b.WriteByte(c)
			bracket = c == '[' || bracket && c != ']'
			continue
		}
		i++
		switch next := pattern[i]; {
		case next == 'w' && bracket:
			b.WriteString(onigurumaWord)
		case next == 'w':
			b.WriteString("[" + onigurumaWord + onigurumaAlone + "]")
		case next == 'W' && !bracket:
			b.WriteString("[^" + onigurumaWord + onigurumaAlone + "]")
		default:
			b.WriteByte(c)
			b.WriteByte(next)
		}
	}
	return b.String()
}
