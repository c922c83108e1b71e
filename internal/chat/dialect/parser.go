package dialect

import (
	"iter"
	"unicode/utf8"
)

const (
	// maxHeld bounds the bytes of a call that is not complete; a longer one is content.
	maxHeld = 1 << 20
	// maxSpace bounds the white space that waits for what follows it.
	maxSpace = 4 << 10
	// maxName bounds the bytes of names of tools and arguments.
	maxName = 256
	// maxDepth bounds the nesting of values.
	maxDepth = 200
	// maxJoined bounds the text to which more is joined.
	maxJoined = 4 << 10
	// pieceBytes is how much of a long text the parser is given at once.
	pieceBytes = 64 << 10
)

// A Parser reads one answer. It is not safe for concurrent use.
//
// The grammars are written as if all the text were there; they run as a coroutine, which waits where the text
// ends so far. Each byte is read a bounded number of times: after a failure reading goes on where it failed.
type Parser struct {
	tool       *tool
	reasoning  *reasoning
	tools      map[string]*Tool
	promptOpen bool
	assured    Assured

	resume func() (struct{}, bool)
	yield  func(struct{}) bool
	closed bool

	buf  []byte // the text that is still needed
	pos  int    // of the next byte to read
	mark int    // buf[mark:safe] has been decided and not been sent
	safe int    // buf[safe:pos] is undecided
	eof  bool   // nothing follows buf

	kind    Kind   // of the text that is passed on
	trim    bool   // white space at its beginning is dropped
	quiet   bool   // nothing but white space has come since a call or a closing mark
	draft   draft  // the call that is read
	pending []call // complete, but what surrounds them is not
	found   int    // calls since the last decision, pending or sent
	calls   int    // sent
	events  []Event

	sure    bool // a call that is read is Assured
	telling bool // buf[mark:pos] are arguments of a live call
	over    bool // the end of the answer was looked at since the last decision

	steps int // bytes looked at, for tests
}

// A call is a complete call; args is a JSON object.
type call struct{ name, id, args string }

// begin starts the coroutine; it runs when there is text.
func (p *Parser) begin() {
	p.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		p.run()
	})
}

// Write takes the next piece of the answer, which may end anywhere, and returns what is decided by it.
func (p *Parser) Write(text string) []Event {
	if p.closed {
		return nil
	}
	p.events = nil
	for text != "" {
		n := min(len(text), pieceBytes)
		p.buf = append(p.buf, text[:n]...)
		text = text[n:]
		p.resume()
	}
	return p.events
}

// Close says that the answer has ended, and returns the rest of it.
func (p *Parser) Close() []Event {
	if p.closed {
		return nil
	}
	p.events, p.eof, p.closed = nil, true, true
	p.resume()
	return p.events
}

// run reads the answer.
func (p *Parser) run() {
	if p.reasoning.channels != nil {
		p.reasoning.channels(p)
	} else {
		p.plain()
	}
	if !p.quiet || p.mark < p.safe {
		p.safe = len(p.buf)
	}
	p.flush(true)
}

// at returns the byte at pos+i; false where the text ends, or where too much would be held back.
func (p *Parser) at(i int) (byte, bool) {
	p.steps++
	for p.pos+i >= len(p.buf) {
		if !p.more() {
			return 0, false
		}
	}
	if p.pos+i-p.safe >= maxHeld && !p.sure {
		return 0, false
	}
	return p.buf[p.pos+i], true
}

// more waits for text; false if none will come.
func (p *Parser) more() bool {
	if p.eof {
		p.over = true
		return false
	}
	if p.telling {
		p.tell(false)
	} else {
		p.flush(false)
	}
	p.yield(struct{}{})
	return true
}

// ended reports whether the answer ends here.
func (p *Parser) ended() bool {
	_, ok := p.at(0)
	return !ok && p.eof && p.pos >= len(p.buf)
}

// flush sends what has been decided; unless all, without the beginning of a character at its end.
func (p *Parser) flush(all bool) {
	if p.trim {
		for p.mark < p.safe && isSpace(p.buf[p.mark]) {
			p.mark++
		}
	}
	text := p.buf[p.mark:p.safe]
	if !all {
		text = text[:len(text)-partialRune(text)]
	}
	if len(text) == 0 {
		return
	}
	p.trim, p.quiet = false, false
	p.mark += len(text)
	p.send(Event{Kind: p.kind, Text: string(text)})
}

// send adds an event, joining text with the one before.
func (p *Parser) send(e Event) {
	if n := len(p.events); n > 0 && e.Kind <= Reasoning && p.events[n-1].Kind == e.Kind && len(p.events[n-1].Text) < maxJoined {
		p.events[n-1].Text += e.Text
		return
	}
	p.events = append(p.events, e)
}

// partialRune counts the bytes at the end of text that begin a character and do not complete it.
func partialRune(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// compact forgets what has been sent. Positions change: no grammar may be under way.
func (p *Parser) compact() {
	if p.mark < pieceBytes && p.mark < len(p.buf) || p.mark == 0 {
		return
	}
	p.buf = p.buf[:copy(p.buf, p.buf[p.mark:])]
	p.pos, p.safe, p.mark = p.pos-p.mark, p.safe-p.mark, 0
}

// drop sends what has been decided and forgets the rest up to here: a marker, and white space before it.
func (p *Parser) drop() {
	p.flush(true)
	p.mark, p.safe = p.pos, p.pos
}

// leave drops a closing mark: white space behind it is no content unless more follows.
func (p *Parser) leave() {
	p.drop()
	p.quiet = true
}

// enter drops a marker; text of the given kind follows.
func (p *Parser) enter(kind Kind) {
	p.drop()
	p.kind, p.trim = kind, kind == Reasoning
}

// settle ends a try: the calls that it found are sent, or what it has read is text.
func (p *Parser) settle(ok bool) {
	switch {
	case ok:
		p.drop()
		p.sendCalls()
	case p.sure && p.over:
		p.flush(true)
		p.cutOff()
	default:
		if p.draft.live {
			p.endLive()
		}
		p.pending = p.pending[:0]
		p.safe = p.pos
	}
	p.found, p.over = 0, false
}

// sendCalls sends the calls that are complete.
func (p *Parser) sendCalls() {
	for _, c := range p.pending {
		p.events = append(p.events,
			Event{Kind: CallBegin, Call: p.calls, Name: c.name, ID: c.id},
			Event{Kind: CallArguments, Call: p.calls, Text: c.args},
			Event{Kind: CallEnd, Call: p.calls})
		p.calls++
		p.quiet = true
	}
	p.pending = p.pending[:0]
}
