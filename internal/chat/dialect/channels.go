package dialect

// A channelForm is how an answer of messages is written: a header says what the body is.
type channelForm struct {
	starts []string // begin a message
	ends   []string // end one
	// head reads a header after start i, and for a call its body with its end; -1: at the beginning of the answer.
	// It enters the kind of text that the body has; isCall: a call was read.
	head func(p *Parser, i int) (isCall, ok bool)
}

// read reads the whole answer. Marks outside of well-formed messages are content.
func (f channelForm) read(p *Parser) {
	inside := p.promptOpen
	if inside {
		p.enter(Reasoning)
	} else {
		inside = f.first(p)
	}
	markers := append(append([]string{}, f.ends...), f.starts...)
	for {
		switch i := p.scan(markers); {
		case i < 0:
			if !inside { // outside of messages an assured answer has no text
				p.tail()
			}
			return
		case i < len(f.ends) && inside:
			p.leave()
			p.kind, inside = Content, false
		case i < len(f.ends):
			p.safe = p.pos
		default:
			inside = f.message(p, i-len(f.ends))
		}
	}
}

// first reads the first header, whose beginning is in the prompt; an answer may have it all the same.
func (f channelForm) first(p *Parser) bool {
	if p.follows(f.starts...) {
		return false
	}
	p.space()
	return f.message(p, -1)
}

// message reads a header; it reports whether a body of text follows.
func (f channelForm) message(p *Parser, i int) bool {
	p.over = false
	isCall, ok := f.head(p, i)
	switch {
	case !ok:
		// Text before the header keeps its kind, the header is content.
		p.garbled()
		return false
	case isCall:
		p.settle(true)
		p.kind = Content
		return false
	}
	return true
}

// garbled makes what has been read since the last decision content.
func (p *Parser) garbled() {
	p.flush(true)
	p.kind = Content
	p.settle(false)
}

// token takes one of the marks, if one follows after white space.
func (p *Parser) token(marks []string) bool {
	start := p.pos
	p.space()
	if c, ok := p.at(0); ok && p.marker(c, marks) >= 0 {
		return true
	}
	p.pos = start
	return false
}

// closed takes the end of a message with a call, which a server may have cut off, or sees the next message.
func (f channelForm) closed(p *Parser) bool {
	if p.token(f.ends) {
		return true
	}
	return p.follows(f.starts...) || p.blankEnd()
}

// blankEnd reports whether nothing but white space follows.
func (p *Parser) blankEnd() bool {
	start := p.pos
	defer func() { p.pos = start }()
	p.space()
	return p.ended()
}
