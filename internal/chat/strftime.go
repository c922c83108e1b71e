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

// layouts are Go's layouts of the directives that have one.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'd': "02", 'm': "01", 'y': "06", 'Y': "2006",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'e': "_2", 'z': "-0700", 'Z': "MST",
	'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'D': "01/02/06", 'x': "01/02/06", 'X': "15:04:05", 'c': "Mon Jan _2 15:04:05 2006",
}

func directive(t time.Time, c byte) string {
	if layout, ok := layouts[c]; ok {
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
