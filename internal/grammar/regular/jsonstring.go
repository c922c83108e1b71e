package regular

import (
	"strings"
)

// Spelling says how a JSON string may write characters.
type Spelling uint8

const (
	// Canonical escapes only what JSON needs escaped, in the shortest way: \" \\ \b \f \n \r \t \u00xx.
	Canonical Spelling = iota
	// Any allows all escapes: \/, \u0041 and pairs of surrogates. Lone surrogates are no text.
	Any
)

// JSONString is the language of what stands between the quotes of JSON strings whose decoded text is in d.
func (b *Builder) JSONString(d *DFA, spelling Spelling) (*DFA, error) {
	s := &speller{b: b, d: d, numbers: map[spelled]int32{}, out: &DFA{}}
	s.first = s.out.joint(d, escapeColumns())
	s.number(spelled{})
	for i := 0; i < len(s.states); i++ {
		state := s.states[i]
		s.out.accept = append(s.out.accept, state.phase == plain && d.accept[state.at])
		for range s.first {
			s.out.next = append(s.out.next, dead)
		}
		s.from, s.row = state, s.out.next[i*s.out.columns:]
		if spelling == Any {
			s.any()
		} else {
			s.canonical()
		}
		if err := b.room(len(s.states)/mostSpellings, s.out.columns); err != nil {
			return nil, err
		}
		if err := b.step(len(s.first)); err != nil {
			return nil, err
		}
	}
	return b.minimise(s.out)
}

// mostSpellings is how many times more states than before minimising there may be: most are alike.
const mostSpellings = 8

// escapeColumns tells apart the bytes that mean something in escapes.
func escapeColumns() *DFA {
	const special = "\"\\/bfnrtu0123456789acdeABCDEF"
	d := &DFA{columns: len(special) + 2}
	for c := range d.class {
		d.class[c] = uint8(strings.IndexByte(special, byte(c)) + 1)
		if c < 0x20 {
			d.class[c] = uint8(len(special) + 1)
		}
	}
	return d
}

// A spelled is a state of d, and where in an escape the text is.
type spelled struct {
	at    int32
	phase phase
	bits  uint16 // of the escape, those that no byte has taken yet
}

type phase uint8

const (
	plain     phase = iota
	escaped         // behind \
	hex1            // behind \u
	hex2            // behind \u0 or \uD: bits
	hex3            // behind \u0x: bits
	hex4            // behind \u00xx or \u0xx: bits
	wide2           // of three bytes, the first of which was taken: one digit read
	wide3           // two digits read, the second is bits
	wide4           // three digits read, two bytes taken
	high3           // of a high surrogate: two digits read
	high4           // three digits read
	lowEscape       // behind a high surrogate
	lowU            // behind its \
	low1
	low2
	low3
	low4
)

type speller struct {
	b       *Builder
	d       *DFA
	numbers map[spelled]int32
	states  []spelled
	out     *DFA
	from    spelled // the state whose row is filled
	row     []int32
	first   []byte // a byte of each column
}

func (s *speller) number(state spelled) int32 {
	n, ok := s.numbers[state]
	if !ok {
		n = int32(len(s.states))
		s.numbers[state] = n
		s.states = append(s.states, state)
	}
	return n
}

// to lets a byte lead to a phase, after the bytes of the decoded text were taken.
func (s *speller) to(c byte, p phase, bits int, taken ...byte) {
	at := int(s.from.at)
	for _, t := range taken {
		if at = s.d.Next(at, t); at < 0 {
			return
		}
	}
	s.row[s.out.class[c]] = s.number(spelled{int32(at), p, uint16(bits)})
}

// goesOn says whether the decoded text may go on with a byte for which f holds.
func (s *speller) goesOn(f func(byte) bool) bool {
	for _, c := range s.first {
		if f(c) && s.d.Next(int(s.from.at), c) >= 0 {
			return true
		}
	}
	return false
}

// hex lets each hexadecimal digit lead on as f says.
func (s *speller) hex(f func(c byte, digit int)) {
	for digit := range 16 {
		f("0123456789abcdef"[digit], digit)
		f("0123456789ABCDEF"[digit], digit)
	}
}

// The letters of short escapes, and what they stand for.
const (
	shortLetters = `"\bfnrt`
	shortTaken   = "\"\\\b\f\n\r\t"
)

func (s *speller) plain() {
	for _, c := range s.first {
		if c >= 0x20 && c != '"' && c != '\\' {
			s.to(c, plain, 0, c)
		}
	}
}

func (s *speller) short() {
	for i := range len(shortLetters) {
		s.to(shortLetters[i], plain, 0, shortTaken[i])
	}
}

// canonical fills the row of a state: hex4 is behind \u00, with the third digit as bits.
func (s *speller) canonical() {
	switch s.from.phase {
	case plain:
		s.plain()
		if s.goesOn(func(c byte) bool { return c < 0x20 || c == '"' || c == '\\' }) {
			s.to('\\', escaped, 0)
		}
	case escaped:
		s.short()
		if s.goesOn(func(c byte) bool { return c < 0x20 }) {
			s.to('u', hex1, 0)
		}
	case hex1:
		s.to('0', hex2, 0)
	case hex2:
		s.to('0', hex3, 0)
	case hex3:
		s.to('0', hex4, 0)
		s.to('1', hex4, 1)
	case hex4:
		for digit := range 16 {
			taken := byte(s.from.bits)<<4 | byte(digit)
			if strings.IndexByte(shortTaken, taken) < 0 {
				s.to("0123456789abcdef"[digit], plain, 0, taken)
			}
		}
	}
}

// any fills the row of a state for all spellings.
func (s *speller) any() {
	switch s.from.phase {
	case plain:
		s.plain()
		if s.goesOn(func(c byte) bool { return c < 0x80 || c >= 0xC0 }) { // no escapes within a character
			s.to('\\', escaped, 0)
		}
	case escaped:
		s.short()
		s.to('/', plain, 0, '/')
		s.to('u', hex1, 0)
	case lowEscape:
		s.to('\\', lowU, int(s.from.bits))
	case lowU:
		s.to('u', low1, int(s.from.bits))
	case low1:
		s.to('d', low2, int(s.from.bits))
		s.to('D', low2, int(s.from.bits))
	default:
		s.hex(func(c byte, digit int) { s.digit(c, digit, int(s.from.bits)) })
	}
}

// digit takes a hexadecimal digit, and the bytes of UTF-8 that are known by then.
func (s *speller) digit(c byte, digit, bits int) {
	switch s.from.phase {
	case hex1:
		if digit == 0 || digit == 0xD {
			s.to(c, hex2, digit)
			return
		}
		s.to(c, wide2, 0, byte(0xE0|digit))
	case hex2:
		switch {
		case bits == 0:
			s.to(c, hex3, digit)
		case digit < 8:
			s.to(c, wide3, digit, 0xED)
		case digit < 0xC:
			s.to(c, high3, digit&3)
		}
	case hex3, hex4:
		s.smallDigit(c, digit, bits)
	case wide2:
		s.to(c, wide3, digit)
	case wide3:
		s.to(c, wide4, digit&3, byte(0x80|bits<<2|digit>>2))
	case wide4:
		s.to(c, plain, 0, byte(0x80|bits<<4|digit))
	case high3:
		s.to(c, high4, bits<<4|digit)
	case high4:
		w := bits>>2 + 1
		s.to(c, lowEscape, digit&3, byte(0xF0|w>>2), byte(0x80|(w&3)<<4|(bits&3)<<2|digit>>2))
	case low2:
		if digit >= 0xC {
			s.to(c, low3, bits<<2|digit&3)
		}
	case low3:
		s.to(c, low4, digit&3, byte(0x80|bits<<2|digit>>2))
	case low4:
		s.to(c, plain, 0, byte(0x80|bits<<4|digit))
	}
}

// smallDigit takes the last two digits of a character below U+1000.
func (s *speller) smallDigit(c byte, digit, bits int) {
	switch {
	case s.from.phase == hex3 && bits >= 8: // three bytes
		s.to(c, wide4, digit&3, 0xE0, byte(0x80|bits<<2|digit>>2))
	case s.from.phase == hex3:
		s.to(c, hex4, bits<<4|digit)
	case bits < 8: // one byte
		s.to(c, plain, 0, byte(bits<<4|digit))
	default:
		s.to(c, plain, 0, byte(0xC0|bits>>2), byte(0x80|(bits&3)<<4|digit))
	}
}
