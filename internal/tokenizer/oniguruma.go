package tokenizer

import "strings"

// onigurumaWord is Oniguruma's \w, between brackets: wider than that of regexp2.
const onigurumaWord = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}²³¹¼-¾Ⓐ-ⓩ🄰-🅉🅐-🅩🅰-🆉`

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
			b.WriteString("[" + onigurumaWord + "]")
		case next == 'W' && !bracket:
			b.WriteString("[^" + onigurumaWord + "]")
		default:
			b.WriteByte(c)
			b.WriteByte(next)
		}
	}
	return b.String()
}
