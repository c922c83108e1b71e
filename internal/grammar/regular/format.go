package regular

import "strings"

// Parts of formats, as regular expressions. All are in parentheses where they have alternatives.
const (
	octet     = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	ipv4      = `(?:` + octet + `\.){3}` + octet
	dateCivil = `(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))` +
		`|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	year1     = `(?!0000)` // RFC 3339 has the year 0, calendars of many programs do not
	offset    = `(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
	clock     = `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?` + offset
	durSecond = `\d+S`
	durMinute = `\d+M(?:` + durSecond + `)?`
	durHour   = `\d+H(?:` + durMinute + `)?`
	durTime   = `T(?:` + durHour + `|` + durMinute + `|` + durSecond + `)`
	durMonth  = `\d+M(?:\d+D)?`
	durYear   = `\d+Y(?:` + durMonth + `)?`
	duration  = `P(?:(?:\d+D|` + durMonth + `|` + durYear + `)(?:` + durTime + `)?|` + durTime + `|\d+W)`
	pointer   = `(?:/(?:[^~/]|~[01])*)*`
	// Labels with hyphens in places 3 and 4 are for encoded names, which must decode to something.
	label    = `(?!..--)[A-Za-z\d](?:[A-Za-z\d-]{0,61}[A-Za-z\d])?`
	label61  = `(?!..--)[A-Za-z\d](?:[A-Za-z\d-]{0,59}[A-Za-z\d])?`
	hostname = `(?:` + label + `\.){0,3}` + label61 // 253 characters at most
	atom     = "[A-Za-z\\d!#$%&'*+/=?^_`{|}~-]+"
	email    = `(?=[^@]{1,64}@)` + atom + `(?:\.` + atom + `)*@(?:` + label + `\.){0,2}` + label61 // 254 at most
	expand   = `\{[+#./;?&]?` + variable + `(?:,` + variable + `)*\}`
	variable = `(?:\w|%[\dA-Fa-f]{2})(?:\.?(?:\w|%[\dA-Fa-f]{2}))*(?::[1-9]\d{0,3}|\*)?`
	template = "(?:[^\\x00-\\x20\\x7f-\\x9f\"'%<>\\\\^`{|}\\ue000-\\uf8ff\\ufdd0-\\ufdef\\ufff0-\\uffff\\u{1fffe}-\\u{1ffff}\\u{2fffe}-\\u{10ffff}]" +
		`|%[\dA-Fa-f]{2}|` + expand + `)*`
)

// ipv6 is the grammar of RFC 3986.
func ipv6() string {
	const group = `[\dA-Fa-f]{1,4}`
	const last32 = `(?:` + group + `:` + group + `|` + ipv4 + `)`
	before := func(most string) string { return `(?:(?:` + group + `:){0,` + most + `}` + group + `)?::` }
	return `(?:` + strings.Join([]string{
		`(?:` + group + `:){6}` + last32,
		`::(?:` + group + `:){5}` + last32,
		`(?:` + group + `)?::(?:` + group + `:){4}` + last32,
		before("1") + `(?:` + group + `:){3}` + last32,
		before("2") + `(?:` + group + `:){2}` + last32,
		before("3") + group + `:` + last32,
		before("4") + last32,
		before("5") + group,
		before("6"),
	}, `|`) + `)`
}

// A resource is the grammar of RFC 3986 or 3987.
type resource struct {
	letters string // of names beside the ASCII ones
	private string // of queries
	strict  bool   // without what readers of URIs are known to stumble over
}

// ucschar of RFC 3987.
const ucschar = `\u{a0}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{ffef}\u{10000}-\u{1fffd}\u{20000}-\u{2fffd}\u{30000}-\u{3fffd}` +
	`\u{40000}-\u{4fffd}\u{50000}-\u{5fffd}\u{60000}-\u{6fffd}\u{70000}-\u{7fffd}\u{80000}-\u{8fffd}\u{90000}-\u{9fffd}` +
	`\u{a0000}-\u{afffd}\u{b0000}-\u{bfffd}\u{c0000}-\u{cfffd}\u{d0000}-\u{dfffd}\u{e1000}-\u{efffd}`

const iprivate = `\u{e000}-\u{f8ff}\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}`

// of gives a repeated character of names with others beside.
func (r resource) of(others string) string {
	return `(?:[\w\-.~!$&'()*+,;=` + r.letters + others + `]|%[\dA-Fa-f]{2})`
}

func (r resource) authority() string {
	name, future := r.of("")+`*`, `|\[[vV][\dA-Fa-f]+\.[\w\-.~!$&'()*+,;=:]+\]`
	if r.strict {
		name, future = `[\w\-.~]*`, ``
	}
	return `(?:` + r.of(":") + `*@)?(?:` + name + `|\[` + ipv6() + `\]` + future + `)(?::\d*)?`
}

func (r resource) tail() string {
	return `(?:\?` + r.of(":@/?"+r.private) + `*)?(?:#` + r.of(":@/?") + `*)?`
}

func (r resource) paths(first string) string {
	char := r.of(":@")
	return `(?://` + r.authority() + `(?:/` + char + `*)*|/(?:` + char + `+(?:/` + char + `*)*)?|(?:` + first + `+(?:/` + char + `*)*)?)`
}

func (r resource) absolute() string {
	return `[A-Za-z][A-Za-z\d+.-]*:` + r.paths(r.of(":@")) + r.tail()
}

func (r resource) reference() string {
	return `(?:` + r.absolute() + `|` + r.paths(r.of("@")) + r.tail() + `)`
}

var (
	strictURI = resource{strict: true}
	anyURI    = resource{}
	anyIRI    = resource{letters: ucschar, private: iprivate}
)

// formatPattern has a regular expression of texts of a format that every validator should accept.
func formatPattern(name string) (pattern string, ok bool) {
	switch name {
	case "date":
		return year1 + dateCivil, true
	case "time":
		return clock, true
	case "date-time":
		return year1 + dateCivil + "T" + clock, true
	case "uri", "iri":
		return strictURI.absolute(), true
	case "uri-reference", "iri-reference":
		return strictURI.reference(), true
	case "email", "idn-email":
		return email, true
	case "hostname", "idn-hostname":
		return hostname, true
	case "uri-template":
		return `(?!.*%7[BbDd])/` + template, true // encoded braces confuse some
	}
	return exactPattern(name)
}

// exactPattern has a regular expression of all texts of a format, where there is a practical one.
func exactPattern(name string) (pattern string, ok bool) {
	switch name {
	case "date":
		return dateCivil, true
	case "duration":
		return duration, true
	case "ipv4":
		return ipv4, true
	case "ipv6":
		return ipv6(), true
	case "uuid":
		return `[\dA-Fa-f]{8}(?:-[\dA-Fa-f]{4}){3}-[\dA-Fa-f]{12}`, true
	case "uri":
		return anyURI.absolute(), true
	case "uri-reference":
		return anyURI.reference(), true
	case "iri":
		return anyIRI.absolute(), true
	case "iri-reference":
		return anyIRI.reference(), true
	case "uri-template":
		return template, true
	case "json-pointer":
		return pointer, true
	case "relative-json-pointer":
		return `(?:0|[1-9]\d*)(?:#|` + pointer + `)`, true
	}
	return "", false
}

// Format is a language of texts of a format of JSON Schema, for writing: all validators should accept them,
// so some that are unusual are missing. ok is false for a format that is not known here.
func (b *Builder) Format(name string) (d *DFA, ok bool, err error) {
	pattern, ok := formatPattern(name)
	return b.format("write:"+name, pattern, ok)
}

// ExactFormat is the language of all texts of a format, as its standard has it. ok is false for a format
// that is not known, or whose rules are no matter of automata: time, date-time (leap seconds), hostname and
// email (lengths), and what is written in other languages (regex).
func (b *Builder) ExactFormat(name string) (d *DFA, ok bool, err error) {
	pattern, ok := exactPattern(name)
	return b.format("exact:"+name, pattern, ok)
}

func (b *Builder) format(key, pattern string, ok bool) (*DFA, bool, error) {
	if d := b.named[key]; d != nil || !ok {
		return d, ok, nil
	}
	d, err := b.Regexp(pattern, false)
	if err == nil {
		b.named[key] = d
	}
	return d, true, err
}
