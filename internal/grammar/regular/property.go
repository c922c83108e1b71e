package regular

import (
	"strings"
	"unicode"
)

// property reads {Name} or {Name=Value} behind \p.
func (p *parser) property() runes {
	at := p.at - 2
	end := strings.IndexByte(p.rest(), '}')
	if !strings.HasPrefix(p.rest(), "{") || end < 0 {
		p.fail(at, `\p must be followed by {Property}`)
	}
	name := p.rest()[1:end]
	p.at += end + 1
	set, ok := propertySet(name)
	if !ok {
		p.fail(at, `\p{%.40s} is no known property; general categories, scripts and binary properties of Unicode are`, name)
	}
	return set
}

func propertySet(name string) (runes, bool) {
	switch key, value, ok := strings.Cut(name, "="); {
	case !ok:
		if set, ok := category(name); ok {
			return set, true
		}
		return binaryProperty(name)
	case key == "General_Category" || key == "gc":
		return category(value)
	case key == "Script" || key == "sc" || key == "Script_Extensions" || key == "scx":
		return script(value, strings.HasPrefix(key, "Script_E") || key == "scx")
	}
	return nil, false
}

// category has the names and the aliases of Unicode.
func category(name string) (runes, bool) {
	if alias, ok := unicode.CategoryAliases[name]; ok {
		name = alias
	}
	if name == "Cn" || name == "Unassigned" || name == "C" || name == "Other" {
		assigned := assignedRunes()
		if name == "Cn" || name == "Unassigned" {
			return assigned.not(), true
		}
		return assigned.not().or(ofTable(unicode.C)), true
	}
	if name == "LC" || name == "Cased_Letter" {
		return ofTable(unicode.Lu).or(ofTable(unicode.Ll)).or(ofTable(unicode.Lt)), true
	}
	t, ok := unicode.Categories[name]
	if !ok {
		return nil, false
	}
	return ofTable(t), true
}

func assignedRunes() runes {
	var set runes
	for _, t := range []*unicode.RangeTable{unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co} {
		set = append(set, ofTable(t)...)
	}
	return newRunes(set...)
}

// script knows long names. Characters that several scripts share are in none but by their extensions,
// for which there is no table here: they are refused except where both are the same question.
func script(name string, extensions bool) (runes, bool) {
	t, ok := unicode.Scripts[name]
	if !ok || extensions {
		return nil, false
	}
	return ofTable(t), true
}

func binaryProperty(name string) (runes, bool) {
	table := func(tables ...*unicode.RangeTable) (runes, bool) {
		var set runes
		for _, t := range tables {
			set = append(set, ofTable(t)...)
		}
		return newRunes(set...), true
	}
	switch name {
	case "Any":
		return allRunes, true
	case "ASCII":
		return newRunes(span{0, 0x7F}), true
	case "Assigned":
		return assignedRunes(), true
	case "Alphabetic", "Alpha":
		return table(unicode.L, unicode.Nl, unicode.Other_Alphabetic)
	case "Uppercase", "Upper":
		return table(unicode.Lu, unicode.Other_Uppercase)
	case "Lowercase", "Lower":
		return table(unicode.Ll, unicode.Other_Lowercase)
	case "White_Space", "space":
		return table(unicode.White_Space)
	}
	if t, ok := unicode.Properties[name]; ok && !strings.HasPrefix(name, "Other_") {
		return ofTable(t), true
	}
	return nil, false
}
