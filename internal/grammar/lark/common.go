package lark

import (
	"strings"

	"github.com/spillway/spillway/internal/grammar/cfg"
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
	begin := p.at
	if p.name() != "common" {
		p.at = begin
		p.failf("only common is there to import from")
		return
	}
	if p.take(".") {
		p.importName()
		return
	}
	p.space(false)
	if !p.take("(") {
		p.failf("%%import is of common.NAME or common (NAME, NAME)")
		return
	}
	for p.err == nil {
		p.space(true)
		p.importName()
		p.space(true)
		if p.take(")") {
			return
		}
		if !p.take(",") {
			p.failf(") is missing")
		}
	}
}

func (p *parser) importName() {
	begin := p.at
	name := p.name()
	body, ok := common[name]
	if !ok {
		p.at = begin
		p.failf("common has no terminal %q", name)
		return
	}
	as := name
	at := p.at
	p.space(false)
	if p.take("->") {
		p.space(false)
		as = p.name()
	} else {
		p.at = at
	}
	n := p.named(as, begin)
	if n.defined {
		p.at = begin
		p.failf("%s is defined twice", as)
		return
	}
	n.defined = true
	p.b.Define(n.rule, p.common(body))
}

// common is a terminal of common.lark. Those that it uses are inlined under names that no grammar can have.
func (p *parser) common(body string) cfg.Expr {
	q := &parser{b: p.b, o: p.o, words: p.words, names: p.names, skip: p.skip}
	q.text = commonNames(body)
	e := q.body(false)
	if p.err == nil {
		p.err = q.err
	}
	p.order = append(p.order, q.order...)
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

// imports defines what terminals of common.lark use, and refuses names that are not defined.
func (p *parser) imports() {
	for i := 0; i < len(p.order) && p.err == nil; i++ {
		name := p.order[i]
		n := p.names[name]
		if n.defined {
			continue
		}
		short, ok := strings.CutPrefix(name, commonPrefix)
		if body := common[short]; ok && body != "" {
			n.defined = true
			p.b.Define(n.rule, p.common(body))
			continue
		}
		p.at = n.used
		p.failf("%s is used, but not defined", name)
	}
}
