package accept

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An escape is where in an escape of a string the text is.
type escape struct {
	phase  escapePhase
	digits int
	value  rune
	high   rune // a high surrogate whose low one may come; 0: none
}

type escapePhase uint8

const (
	none      escapePhase = iota
	backslash             // read
	hexDigits
)

// A utf8Run is where in a character the text is.
type utf8Run struct {
	left   int  // bytes that are still to come
	lo, hi byte // of the next one
}

func (c *Checker) beginString() {
	c.mode = inString
	c.escape, c.utf8 = escape{}, utf8Run{}
	c.enter(kindString)
}

// plainRun takes the characters that stand for themselves, at least one byte, and says how many bytes it took.
func (c *Checker) plainRun(text []byte) int {
	if c.escape.high != 0 || c.careful() {
		c.byte(text[0])
		return 1
	}
	n := 0
	for n < len(text) && text[n] >= 0x20 && text[n] < utf8.RuneSelf && text[n] != '"' && text[n] != '\\' {
		n++
	}
	if n == 0 {
		c.byte(text[0])
		return 1
	}
	c.decoded(text[:n])
	return n
}

// careful says whether bytes must be taken one by one for the offset of a failure to be exact.
func (c *Checker) careful() bool {
	for _, e := range c.top().evals {
		if e.verdict == open && e.text != nil {
			return true
		}
	}
	return false
}

func (c *Checker) stringByte(b byte) {
	switch {
	case c.utf8.left > 0:
		c.continuation(b)
	case c.escape.phase == backslash:
		c.escaped(b)
	case c.escape.phase == hexDigits:
		c.hexDigit(b)
	case b == '\\':
		c.escape.phase = backslash
	case c.escape.high != 0:
		c.loneSurrogate()
		c.stringByte(b)
	case b == '"':
		c.endOfValue()
	case b < 0x20:
		c.syntax("%s within a string; JSON wants it escaped", shown(b))
	case b < utf8.RuneSelf:
		c.scratch[0] = b
		c.decoded(c.scratch[:1])
	default:
		c.lead(b)
	}
}

// lead takes the first byte of a character of more than one.
func (c *Checker) lead(b byte) {
	u := utf8Run{lo: 0x80, hi: 0xBF}
	switch {
	case b >= 0xC2 && b <= 0xDF:
		u.left = 1
	case b >= 0xE0 && b <= 0xEF:
		u.left = 2
		if b == 0xE0 {
			u.lo = 0xA0
		} else if b == 0xED {
			u.hi = 0x9F
		}
	case b >= 0xF0 && b <= 0xF4:
		u.left = 3
		if b == 0xF0 {
			u.lo = 0x90
		} else if b == 0xF4 {
			u.hi = 0x8F
		}
	default:
		c.syntax("%s is no UTF-8", shown(b))
		return
	}
	c.utf8 = u
	c.scratch[0] = b
	c.decoded(c.scratch[:1])
}

func (c *Checker) continuation(b byte) {
	if b < c.utf8.lo || b > c.utf8.hi {
		c.syntax("%s is no UTF-8", shown(b))
		return
	}
	c.utf8 = utf8Run{c.utf8.left - 1, 0x80, 0xBF}
	c.scratch[0] = b
	c.decoded(c.scratch[:1])
}

func (c *Checker) escaped(b byte) {
	c.escape.phase = none
	if b == 'u' {
		c.escape = escape{phase: hexDigits, high: c.escape.high}
		return
	}
	i := strings.IndexByte(`"\/bfnrt`, b)
	if i < 0 {
		c.syntax(`\ before %s; JSON has only \" \\ \/ \b \f \n \r \t and \u`, shown(b))
		return
	}
	if c.escape.high != 0 {
		c.loneSurrogate()
	}
	c.scratch[0] = "\"\\/\b\f\n\r\t"[i]
	c.decoded(c.scratch[:1])
}

func (c *Checker) hexDigit(b byte) {
	switch {
	case b >= '0' && b <= '9':
		b -= '0'
	case b|0x20 >= 'a' && b|0x20 <= 'f':
		b = b | 0x20 - 'a' + 10
	default:
		c.unexpected(b, "a hexadecimal digit")
		return
	}
	c.escape.value = c.escape.value<<4 | rune(b)
	if c.escape.digits++; c.escape.digits == 4 {
		c.codeUnit(c.escape.value)
	}
}

// codeUnit takes the 16 bits of an escape.
func (c *Checker) codeUnit(unit rune) {
	high := c.escape.high
	c.escape = escape{}
	if high != 0 {
		if r := utf16.DecodeRune(high, unit); r != utf8.RuneError {
			c.rune(r)
			return
		}
		c.rune(utf8.RuneError)
	}
	switch {
	case unit >= 0xD800 && unit < 0xDC00:
		c.escape.high = unit
	case utf16.IsSurrogate(unit):
		c.rune(utf8.RuneError)
	default:
		c.rune(unit)
	}
}

func (c *Checker) loneSurrogate() {
	c.escape.high = 0
	c.rune(utf8.RuneError)
}

func (c *Checker) rune(r rune) {
	n := utf8.EncodeRune(c.scratch[:], r)
	c.decoded(c.scratch[:n])
}

// numberPhase is where in a number the text is.
type numberPhase uint8

const (
	numberSign numberPhase = iota
	numberZero
	numberWhole
	numberPoint
	numberFraction
	numberE
	numberExponentSign
	numberExponent
)

// after is the phase after a byte; ok is false if the number does not go on with it.
func (p numberPhase) after(b byte) (next numberPhase, ok bool) {
	digit := b >= '0' && b <= '9'
	switch {
	case p == numberSign && b == '0':
		return numberZero, true
	case digit && (p == numberSign || p == numberWhole):
		return numberWhole, true
	case digit && (p == numberPoint || p == numberFraction):
		return numberFraction, true
	case digit && p >= numberE:
		return numberExponent, true
	case b == '.' && (p == numberZero || p == numberWhole):
		return numberPoint, true
	case b|0x20 == 'e' && (p == numberZero || p == numberWhole || p == numberFraction):
		return numberE, true
	case (b == '+' || b == '-') && p == numberE:
		return numberExponentSign, true
	}
	return p, false
}

func (p numberPhase) complete() bool {
	return p == numberZero || p == numberWhole || p == numberFraction || p == numberExponent
}

func (c *Checker) beginNumber(b byte) {
	c.mode, c.number = inNumber, numberSign
	c.enter(kindNumber)
	if b == '-' {
		c.top().text.WriteByte(b)
		return
	}
	c.numberByte(b)
}

// numberByte says whether a byte is part of the number.
func (c *Checker) numberByte(b byte) bool {
	next, ok := c.number.after(b)
	if ok {
		c.number = next
		c.top().text.WriteByte(b)
	}
	return ok
}

func (c *Checker) endOfNumber() {
	if !c.number.complete() {
		c.syntax("a number ends where a digit must come")
		return
	}
	c.endOfValue()
}
