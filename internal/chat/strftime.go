package chat

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats a time as Python's strftime does in the C locale.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		pad := true
		if format[i] == '-' && i+1 < len(format) { // glibc: no padding
			pad = false
			i++
		}
		text := directive(t, format[i])
		if !pad {
			if text = strings.TrimLeft(text, "0 "); text == "" {
				text = "0"
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

// layoutOf returns Go's layout of a directive, "" if it has none.
func layoutOf(c byte) string {
	const directives = "aAbBhdmyYHIMSpezZFTRDxXc"
	layouts := [len(directives)]string{
		"Mon", "Monday", "Jan", "January", "Jan", "02", "01", "06", "2006", "15", "03", "04", "05", "PM", "_2", "-0700", "MST",
		"2006-01-02", "15:04:05", "15:04", "01/02/06", "01/02/06", "15:04:05", "Mon Jan _2 15:04:05 2006",
	}
	if i := strings.IndexByte(directives, c); i >= 0 {
		return layouts[i]
	}
	return ""
}

func directive(t time.Time, c byte) string {
	if layout := layoutOf(c); layout != "" {
		return t.Format(layout)
	}
	switch c {
	case '%':
		return "%"
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000)
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay())
	case 'w':
		return fmt.Sprint(int(t.Weekday()))
	case 'u':
		return fmt.Sprint((int(t.Weekday())+6)%7 + 1)
	case 's':
		return fmt.Sprint(t.Unix())
	}
	return "%" + string(rune(c))
}
