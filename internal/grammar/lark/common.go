package lark

import (
	"strings"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/notation"
)

// common is the terminals of Lark's common.lark (MIT licence), with look-behind and lazy loops written
// without them; the texts that match are the same.
var common = map[string]string{
	"DIGIT":             `"0".."9"`,
	"HEXDIGIT":          `"a".."f" | "A".."F" | DIGIT`,
	"INT":               `DIGIT+`,
	"SIGNED_INT":        `["+" | "-"] INT`,
	"DECIMAL":           `INT "." INT? | "." INT`,
	"_EXP":              `("e" | "E") SIGNED_INT`,
	"FLOAT":             `INT _EXP | DECIMAL _EXP?`,
	"SIGNED_FLOAT":      `["+" | "-"] FLOAT`,
	"NUMBER":            `FLOAT | INT`,
	"SIGNED_NUMBER":     `["+" | "-"] NUMBER`,
	"_STRING_INNER":     `/.*?/`,
	"_STRING_ESC_INNER": `/(?:[^\\\n]|\\.)*/`,
	"ESCAPED_STRING":    `/"(?:[^"\\\n]|\\.)*"/`,
	"LCASE_LETTER":      `"a".."z"`,
	"UCASE_LETTER":      `"A".."Z"`,
	"LETTER":            `UCASE_LETTER | LCASE_LETTER`,
	"WORD":              `LETTER+`,
	"CNAME":             `("_" | LETTER) ("_" | LETTER | DIGIT)*`,
	"WS_INLINE":         `(" " | /\t/)+`,
	"WS":                `/[ \t\f\r\n]/+`,
	"CR":                `/\r/`,
	"LF":                `/\n/`,
	"NEWLINE":           `(CR? LF)+`,
	"SH_COMMENT":        `/#[^\n]*/`,
	"CPP_COMMENT":       `/\/\/[^\n]*/`,
	"C_COMMENT":         `/\/\*(?:[^*]|\*+[^*\/])*\*+\//`,
	"SQL_COMMENT":       `/--[^\n]*/`,
}

// importLine reads %import common.NAME, with another name behind ->, or several in parentheses.
func (p *parser) importLine() {
	p.space(false)
	begin := p.At
	if p.name() != "common" {
		p.FailAt(begin, "only common is there to import from")
		return
	}
	if p.Take(".") {
		p.importName()
		return
	}
	p.space(false)
	if !p.Take("(") {
		p.Failf("%%import is of common.NAME or common (NAME, NAME)")
		return
	}
	for p.Err == nil {
		p.space(true)
		p.importName()
		p.space(true)
		if p.Take(")") {
			return
		}
		if !p.Take(",") {
			p.Failf(") is missing")
		}
	}
}

func (p *parser) importName() {
	begin := p.At
	name := p.name()
	body, ok := common[name]
	if !ok {
		p.FailAt(begin, "common has no terminal %q", name)
		return
	}
	as := name
	at := p.At
	p.space(false)
	if p.Take("->") {
		p.space(false)
		as = p.name()
	} else {
		p.At = at
	}
	p.Define(as, begin, p.common(body))
}

// common is a terminal of common.lark. Those that it uses are inlined under names that no grammar can have.
func (p *parser) common(body string) cfg.Expr {
	text, at := p.Text, p.At
	p.Text, p.At = commonNames(body), 0
	e := p.body(false)
	p.Text, p.At = text, at
	return e
}

// commonPrefix marks names of common.lark that a grammar did not import.
const commonPrefix = "_COMMON_"

func commonNames(body string) string {
	var out strings.Builder
	for i := 0; i < len(body); {
		j := i
		switch {
		case body[i] == '"' || body[i] == '/':
			for j++; body[j] != body[i]; j++ {
				if body[j] == '\\' {
					j++
				}
			}
			j++
		case isName(body[i]):
			for j < len(body) && isName(body[j]) {
				j++
			}
			out.WriteString(commonPrefix)
		default:
			j++
		}
		out.WriteString(body[i:j])
		i = j
	}
	return out.String()
}

// unimported defines what terminals of common.lark use.
func (p *parser) unimported(n *notation.Name) bool {
	short, ok := strings.CutPrefix(n.Text, commonPrefix)
	body := common[short]
	if !ok || body == "" {
		return false
	}
	p.Define(n.Text, n.Used, p.common(body))
	return true
}
