package dialect

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// scan passes text on until one of the markers, which it takes; -1: the text has ended. White space before the
// marker is undecided.
func (p *Parser) scan(markers []string) int {
	for {
		p.compact()
		c, ok := p.at(0)
		if !ok {
			return -1
		}
		if i := p.marker(c, markers); i >= 0 {
			return i
		}
		p.pos++
		if !isSpace(c) || p.pos-p.safe >= maxSpace {
			p.safe = p.pos
		}
	}
}

// marker takes the marker that stands here; c is the next byte.
func (p *Parser) marker(c byte, markers []string) int {
	for i, m := range markers {
		if m != "" && m[0] == c && p.lit(m) {
			return i
		}
	}
	return -1
}

// lit takes s if it is what follows.
func (p *Parser) lit(s string) bool {
	if !p.sees(s) {
		return false
	}
	p.pos += len(s)
	return true
}

// sees reports whether s follows.
func (p *Parser) sees(s string) bool {
	for i := range len(s) {
		if c, ok := p.at(i); !ok || c != s[i] {
			return false
		}
	}
	return true
}

// space takes white space.
func (p *Parser) space() {
	for {
		if c, ok := p.at(0); !ok || !isSpace(c) {
			return
		}
		p.pos++
	}
}

// spaced takes s and white space around it.
func (p *Parser) spaced(s string) bool {
	p.space()
	if !p.lit(s) {
		return false
	}
	p.space()
	return true
}

// last takes white space and s.
func (p *Parser) last(s string) bool {
	p.space()
	return p.lit(s)
}

// until takes text up to one of the ends, which it takes, too; -1: there is none.
func (p *Parser) until(ends ...string) (text string, end int) {
	start := p.pos
	for {
		c, ok := p.at(0)
		if !ok {
			return "", -1
		}
		stop := p.pos
		if i := p.marker(c, ends); i >= 0 {
			return string(p.buf[start:stop]), i
		}
		p.pos++
	}
}

// name takes the name of a tool: without white space, brackets and quotes, and not empty.
func (p *Parser) name() (string, bool) {
	return p.word(func(c byte) bool {
		switch c {
		case '<', '>', '{', '}', '[', ']', '(', ')', '"', '\'', '`', ',', ';', '|', 0x7f:
			return false
		}
		return c > ' '
	})
}

// word takes bytes for as long as they are good; there must be some, and not too many.
func (p *Parser) word(good func(byte) bool) (string, bool) {
	start := p.pos
	for {
		if c, ok := p.at(0); !ok || !good(c) {
			return string(p.buf[start:p.pos]), p.pos > start
		}
		if p.pos++; p.pos-start > maxName {
			return "", false
		}
	}
}

// key takes the name of an argument and the end after it: anything on one line.
func (p *Parser) key(end string) (string, bool) {
	start := p.pos
	for {
		if p.sees(end) {
			key := string(p.buf[start:p.pos])
			p.pos += len(end)
			return key, key != ""
		}
		if c, ok := p.at(0); !ok || c == '\n' || p.pos-start > maxName {
			return "", false
		}
		p.pos++
	}
}

// try reads one call, or several that belong together.
func (p *Parser) try(read func(p *Parser) bool) {
	p.over = false
	p.settle(read(p))
}

// section reads calls that stand between a mark, which has been taken, and end: each begins with open, which one
// follows. Where the first does not begin well, the mark is text; text between later ones is content.
func (p *Parser) section(mark, open, end string, one func(p *Parser) bool) {
	first := func(p *Parser) bool {
		p.space()
		return p.lit(open) && one(p)
	}
	before := p.calls
	if p.try(first); p.calls == before {
		return
	}
	for markers := []string{open, end, mark}; ; {
		switch p.scan(markers) {
		case 0:
			p.try(one)
		case 1:
			p.leave()
			return
		case 2:
			p.try(first)
		default:
			p.tail()
			return
		}
	}
}
