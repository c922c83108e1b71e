package lark

import (
	"strings"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// regexp reads /pattern/flags.
func (p *parser) regexp() cfg.Expr {
	begin := p.At
	p.At++
	from := p.At
	for p.At < len(p.Text) && p.Text[p.At] != '/' && p.Text[p.At] != '\n' {
		if p.Text[p.At] == '\\' {
			p.At++
		}
		p.At++
	}
	if p.At >= len(p.Text) || p.Text[p.At] != '/' {
		p.FailAt(begin, "a regular expression's closing / is missing")
		return 0
	}
	pattern := p.Text[from:p.At]
	p.At++
	flags := ""
	for p.At < len(p.Text) && strings.IndexByte("imslux", p.Text[p.At]) >= 0 {
		switch c := p.Text[p.At]; c {
		case 'i', 's':
			flags += string(c)
		case 'u':
		default:
			p.Failf("the flag %c of regular expressions is not supported; there are i, s and u", c)
		}
		p.At++
	}
	e, err := p.pattern(pattern, flags)
	if err != nil {
		p.FailAt(begin, "%w", err)
	}
	return e
}

// pattern is the language of a regular expression in Python's notation, as far as it is that of ECMA-262.
func (p *parser) pattern(pattern, flags string) (cfg.Expr, error) {
	if strings.HasPrefix(pattern, "(?") {
		if set, rest, ok := strings.Cut(pattern[2:], ")"); ok && set != "" && strings.Trim(set, "isu") == "" {
			pattern, flags = rest, flags+strings.ReplaceAll(set, "u", "")
		}
	}
	pattern = ecma(pattern, strings.Contains(flags, "s"))
	set := ""
	for _, f := range []string{"i", "s"} {
		if strings.Contains(flags, f) {
			set += f
		}
	}
	if set != "" {
		pattern = "(?" + set + ":" + pattern + ")"
	}
	d, err := p.words.Regexp(pattern, false)
	if err != nil {
		return 0, err
	}
	return p.B.DFA(d), nil
}

// ecma drops backslashes before marks that Python and Rust allow and ECMA-262 does not, and writes names of
// groups, the ends of text, and any character but a line feed as that does.
func ecma(pattern string, dotAll bool) string {
	var out strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			switch next := pattern[i]; {
			case next == 'A':
				out.WriteByte('^')
			case next == 'Z' || next == 'z':
				out.WriteByte('$')
			case next < 0x80 && strings.IndexByte("!\"#%&',:;<=>@_`~ ", next) >= 0:
				out.WriteByte(next)
			default:
				out.WriteByte(c)
				out.WriteByte(next)
			}
		case c == '.' && !class && !dotAll:
			out.WriteString(`[^\n]`)
		case !class && strings.HasPrefix(pattern[i:], "(?P<"):
			out.WriteString("(?<")
			i += len("(?P<") - 1
		default:
			class = c == '[' || class && c != ']'
			out.WriteByte(c)
		}
	}
	return out.String()
}
