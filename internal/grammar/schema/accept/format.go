package accept

import (
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/regular"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// A format has an automaton, a function of the whole text, or both: both must accept.
type format struct {
	name      string
	automaton *regular.DFA
	check     func(string) bool
}

func (c *compiler) format(s *schema.Schema, name string) (*format, error) {
	f := &format{name: name}
	switch name {
	case "time":
		f.check = isTime
	case "date-time":
		f.check = isDateTime
	case "hostname":
		f.check = isHostname
	case "email":
		f.check = func(s string) bool { return isEmail(s, false) }
	case "idn-email":
		f.check = func(s string) bool { return isEmail(s, true) }
	case "regex":
		f.check = func(s string) bool { return regular.CheckRegexp(s) == nil }
	case "idn-hostname":
		return nil, schema.Refuse(s, "format", "%q needs tables of names that are not here", name)
	default:
		d, ok, err := c.build.ExactFormat(name)
		if err != nil {
			return nil, refused(s, "format", err)
		}
		if !ok {
			return nil, nil // unknown formats mean nothing, as the specification has it
		}
		f.automaton = d
	}
	return f, nil
}

// twoDigits reads the number that s begins with.
func twoDigits(s string) (n int, ok bool) {
	if len(s) < 2 || s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9' {
		return 0, false
	}
	return int(s[0]-'0')*10 + int(s[1]-'0'), true
}

// clock reads 00:00 and what follows.
func clock(s string) (minutes int, rest string, ok bool) {
	h, ok1 := twoDigits(s)
	if !ok1 || len(s) < 5 || s[2] != ':' {
		return 0, "", false
	}
	m, ok2 := twoDigits(s[3:])
	return h*60 + m, s[5:], ok2 && h < 24 && m < 60
}

// isTime is full-time of RFC 3339; the second 60 is allowed at the end of a day in UTC.
func isTime(s string) bool {
	local, s, ok := clock(s)
	if !ok || len(s) < 3 || s[0] != ':' {
		return false
	}
	second, ok := twoDigits(s[1:])
	if !ok || second > 60 {
		return false
	}
	if s = s[3:]; strings.HasPrefix(s, ".") {
		rest := strings.TrimLeft(s[1:], "0123456789")
		if len(rest) == len(s)-1 {
			return false
		}
		s = rest
	}
	offset := 0
	switch {
	case s == "Z" || s == "z":
	case s != "" && (s[0] == '+' || s[0] == '-'):
		minutes, rest, ok := clock(s[1:])
		if !ok || rest != "" {
			return false
		}
		if offset = minutes; s[0] == '-' {
			offset = -minutes
		}
	default:
		return false
	}
	return second < 60 || (local-offset+2*24*60)%(24*60) == 24*60-1
}

func isDate(s string) bool {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return false
	}
	century, ok1 := twoDigits(s)
	year, ok2 := twoDigits(s[2:])
	month, ok3 := twoDigits(s[5:])
	day, ok4 := twoDigits(s[8:])
	if !ok1 || !ok2 || !ok3 || !ok4 || month < 1 || month > 12 || day < 1 {
		return false
	}
	year += century * 100
	days := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		days++
	}
	return day <= days
}

func isDateTime(s string) bool {
	return len(s) > 11 && s[10]|0x20 == 't' && isDate(s[:10]) && isTime(s[11:])
}

// isHostname is a name of RFC 1123, with encoded labels as RFC 5891 has them.
func isHostname(s string) bool {
	if len(s) > 253 {
		return false
	}
	for _, label := range strings.Split(s, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '-' && !(c >= '0' && c <= '9') && !(c|0x20 >= 'a' && c|0x20 <= 'z') {
			return false
		}
	}
	return len(s) < 4 || s[2:4] != "--" || strings.EqualFold(s[:2], "xn") && isEncoded(s[4:])
}

// isEmail is a mailbox of RFC 5321, or RFC 6531 with characters beyond ASCII.
func isEmail(s string, wide bool) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || len(s) > 254 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	if strings.HasPrefix(domain, "[") {
		return isMailLiteral(domain) && isLocal(local, wide)
	}
	if wide && !isASCII(domain) {
		for _, label := range strings.Split(domain, ".") {
			if label == "" || len(label) > 252 || strings.ContainsAny(label, " \t\"(),:;<>@[\\]") {
				return false
			}
		}
		return isLocal(local, wide)
	}
	return isHostname(domain) && isLocal(local, wide)
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

func isMailLiteral(s string) bool {
	inner, ok := strings.CutSuffix(s[1:], "]")
	if !ok {
		return false
	}
	if v6, ok := strings.CutPrefix(inner, "IPv6:"); ok {
		addr, err := netip.ParseAddr(v6)
		return err == nil && addr.Is6() && addr.Zone() == ""
	}
	addr, err := netip.ParseAddr(inner)
	return err == nil && addr.Is4()
}

// isLocal is what stands before the @: atoms with dots between them, or a quoted text.
func isLocal(s string, wide bool) bool {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		return isQuoted(s[1:len(s)-1], wide)
	}
	for _, atom := range strings.Split(s, ".") {
		if atom == "" {
			return false
		}
		for _, r := range atom {
			if !(wide && r >= utf8.RuneSelf) && !(r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' || strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)) {
				return false
			}
		}
	}
	return true
}

func isQuoted(s string, wide bool) bool {
	escaped := false
	for _, r := range s {
		switch {
		case r < ' ' || r == 0x7F || r >= utf8.RuneSelf && !wide:
			return false
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == '"':
			return false
		}
	}
	return !escaped
}
