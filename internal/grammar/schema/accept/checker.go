package accept

import (
	"fmt"
	"hash/maphash"

	"github.com/spillway/spillway/internal/grammar/regular"
)

// mostDepth bounds how deep values nest.
const mostDepth = 10_000

// A Checker reads one JSON text. It is for one goroutine.
type Checker struct {
	program *Program
	stack   []*frame
	mode    mode
	refused *cause   // the root's schema does not hold
	broken  *Failure // no JSON
	failure *Failure // what Write and Close say from then on

	offset     int64
	line       int
	lineOffset int64

	literal string // what must follow of null, true or false
	escape  escape
	number  numberPhase
	utf8    utf8Run
	scratch [4]byte
	seed    maphash.Seed
	runs    map[runKey]*regular.Run
}

type mode uint8

const (
	beforeValue mode = iota
	beforeItem       // or the end of an array
	beforeFirst      // name, or the end of an object
	beforeName
	beforeColon
	afterValue
	inString
	inNumber
	inLiteral
)

// New makes a checker of one text.
func (p *Program) New() *Checker { return &Checker{program: p, line: 1, seed: maphash.MakeSeed()} }

// Check checks a whole text. An error is of type *Failure.
func (p *Program) Check(text []byte) error {
	c := p.New()
	if err := c.Write(text); err != nil {
		return err
	}
	return c.Close()
}

// Write takes the next bytes of the text. An error is a *Failure, and final.
func (c *Checker) Write(text []byte) error {
	if c.failure != nil {
		return c.failure
	}
	for i := 0; i < len(text); {
		n := 1
		if c.mode == inString && c.escape.phase == none && c.utf8.left == 0 {
			n = c.plainRun(text[i:])
		} else {
			c.byte(text[i])
		}
		if err := c.verdict(); err != nil {
			return err
		}
		for _, b := range text[i : i+n] {
			c.offset++
			if b == '\n' {
				c.line, c.lineOffset = c.line+1, c.offset
			}
		}
		i += n
	}
	return nil
}

// Close says whether the text is complete and valid. An error is a *Failure.
func (c *Checker) Close() error {
	if c.failure != nil {
		return c.failure
	}
	if c.mode == inNumber && len(c.stack) == 1 {
		c.endOfNumber()
		if err := c.verdict(); err != nil {
			return err
		}
	}
	if len(c.stack) > 0 || c.mode != afterValue {
		c.syntax("the text ends within the JSON value")
		return c.verdict()
	}
	return nil
}

// verdict makes a failure of what was found wrong at the current byte.
func (c *Checker) verdict() error {
	switch {
	case c.broken != nil:
		c.failure = c.broken
	case c.refused != nil:
		c.failure = c.refused.failure()
	default:
		return nil
	}
	c.failure.Offset, c.failure.Line, c.failure.Column = c.offset, c.line, int(c.offset-c.lineOffset)+1
	return c.failure
}

// syntax says that the text is no JSON.
func (c *Checker) syntax(format string, args ...any) {
	if c.broken == nil {
		c.broken = &Failure{Detail: fmt.Sprintf(format, args...)}
	}
}

func (c *Checker) unexpected(b byte, want string) {
	c.syntax("%s where %s must come", shown(b), want)
}

func shown(b byte) string {
	if b < 0x20 || b >= 0x7F {
		return fmt.Sprintf("byte 0x%02x", b)
	}
	return fmt.Sprintf("%q", b)
}

// byte takes one byte outside of the plain parts of strings.
func (c *Checker) byte(b byte) {
	switch c.mode {
	case inString:
		c.stringByte(b)
		return
	case inLiteral:
		c.literalByte(b)
		return
	case inNumber:
		if c.numberByte(b) {
			return
		}
		c.endOfNumber()
	}
	if b == ' ' || b == '\t' || b == '\n' || b == '\r' || c.broken != nil || c.refused != nil {
		return
	}
	switch c.mode {
	case beforeItem:
		if b == ']' {
			c.endOfValue()
			return
		}
		c.beginValue(b)
	case beforeValue:
		c.beginValue(b)
	case beforeFirst, beforeName:
		c.beginName(b)
	case beforeColon:
		if b != ':' {
			c.unexpected(b, "a colon")
			return
		}
		c.mode = beforeValue
	case afterValue:
		c.separator(b)
	}
}

func (c *Checker) beginName(b byte) {
	switch {
	case b == '}' && c.mode == beforeFirst:
		c.endOfValue()
	case b == '"':
		c.top().inName = true
		c.beginString()
	case c.mode == beforeFirst:
		c.unexpected(b, "a name or }")
	default:
		c.unexpected(b, "a name")
	}
}

func (c *Checker) separator(b byte) {
	f := c.top()
	switch {
	case f == nil:
		c.unexpected(b, "the end of the text")
	case b == ',' && f.kind == kindArray:
		c.mode = beforeValue
	case b == ',':
		c.mode = beforeName
	case b == ']' && f.kind == kindArray, b == '}' && f.kind == kindObject:
		c.endOfValue()
	case f.kind == kindArray:
		c.unexpected(b, "a comma or ]")
	default:
		c.unexpected(b, "a comma or }")
	}
}

func (c *Checker) beginValue(b byte) {
	if len(c.stack) >= mostDepth {
		c.syntax("values nest more than %d deep", mostDepth)
		return
	}
	switch {
	case b == '{':
		c.mode = beforeFirst
		c.enter(kindObject)
	case b == '[':
		c.mode = beforeItem
		c.enter(kindArray)
	case b == '"':
		c.beginString()
	case b == '-' || b >= '0' && b <= '9':
		c.beginNumber(b)
	case b == 'n':
		c.beginLiteral(kindNull, "ull")
	case b == 't':
		c.beginLiteral(kindTrue, "rue")
	case b == 'f':
		c.beginLiteral(kindFalse, "alse")
	default:
		c.unexpected(b, "a value")
	}
}

// endOfValue ends the innermost value.
func (c *Checker) endOfValue() {
	c.mode = afterValue
	if c.top().isName {
		c.mode = beforeColon
	}
	c.leave()
}

func (c *Checker) beginLiteral(k kind, rest string) {
	c.mode, c.literal = inLiteral, rest
	c.enter(k)
}

func (c *Checker) literalByte(b byte) {
	if b != c.literal[0] {
		c.unexpected(b, fmt.Sprintf("the %q of null, true or false", c.literal[:1]))
		return
	}
	if c.literal = c.literal[1:]; c.literal == "" {
		c.endOfValue()
	}
}
