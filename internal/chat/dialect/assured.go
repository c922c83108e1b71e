package dialect

import "slices"

// Assured says which calls are sure to be well-formed, or to be cut off by the end of the answer, as a grammar that
// the answer is held to can make them. Such a call of one of Options.Tools is not held back until it is complete: its
// CallBegin comes with its name, its arguments piece by piece, and its CallEnd with the last of them. In an answer
// that ends before that it has no CallEnd, and what was read of its arguments is no whole object; nothing of it is
// content, also where its name is not complete and there is no CallBegin. Arguments that come behind an id have it; an
// id behind them comes too late. An argument that is given twice stands twice.
type Assured struct {
	All    bool     // all calls are
	Marks  []string // those that begin with one of these texts
	Starts []string // the same, where the answer begins with them, or the prompt opened the reasoning and they follow it
}

// A draft is the call that is read.
type draft struct {
	call
	args members
	live bool // its events are sent as it is read
	some bool // and some argument was
}

// trust decides whether a call is sure that begins with one of the texts, of which back bytes have been taken.
func (p *Parser) trust(texts []string, back int) {
	p.pos -= back
	p.sure = p.assured.All || slices.ContainsFunc(texts, p.sees)
	p.pos += back
}

// beginCall begins a call, whose name is complete.
func (p *Parser) beginCall(name, id string) {
	p.draft = draft{call: call{name: name, id: id}}
	// At the end of the answer a name may be the beginning of a longer one.
	if !p.sure || p.over || p.tools[name] == nil {
		return
	}
	p.drop()
	p.sendCalls()
	p.draft.live = true
	p.events = append(p.events, Event{Kind: CallBegin, Call: p.calls, Name: name, ID: id})
}

// member adds an argument, whose value is JSON, to a call whose arguments come one by one.
func (p *Parser) member(key, value string) {
	d := &p.draft
	if !d.live {
		d.args.set(key, value)
		return
	}
	if p.over {
		return // it may be the beginning of a longer one
	}
	open := "{"
	if d.some {
		open = ", "
	}
	d.some = true
	p.drop()
	p.argumentText(string(quote([]byte(open), key)) + ": " + value)
}

// endMembers ends such a call.
func (p *Parser) endMembers() {
	d := &p.draft
	switch {
	case !d.live:
		d.call.args = d.args.text()
	case d.some:
		p.argumentText("}")
	default:
		p.argumentText("{}")
	}
	p.endCall()
}

// endCall ends a call, whose arguments are complete.
func (p *Parser) endCall() {
	p.found++
	if !p.draft.live {
		p.pending = append(p.pending, p.draft.call)
		return
	}
	p.drop()
	p.endLive()
}

func (p *Parser) endLive() {
	p.events = append(p.events, Event{Kind: CallEnd, Call: p.calls})
	p.calls++
	p.draft.live, p.quiet = false, true
}

// argumentText sends a piece of the arguments of a live call.
func (p *Parser) argumentText(text string) {
	if text != "" {
		p.events = append(p.events, Event{Kind: CallArguments, Call: p.calls, Text: text})
	}
}

// argumentObject takes a JSON object that is the arguments of the call.
func (p *Parser) argumentObject() bool {
	d := &p.draft
	if !d.live {
		var ok bool
		d.call.args, ok = p.object()
		return ok
	}
	p.drop()
	p.telling = p.sees("{")
	ok := p.telling && p.jsonValue(0)
	if !ok && p.over {
		p.pos = len(p.buf)
	}
	p.tell(true)
	p.telling = false
	return ok
}

// tell sends what has been read of the arguments; unless all, without the beginning of a character at its end.
func (p *Parser) tell(all bool) {
	text := p.buf[p.mark:p.pos]
	if !all {
		text = text[:len(text)-partialRune(text)]
	}
	p.argumentText(string(text))
	p.mark += len(text)
	p.safe = p.mark
}

// tail ends text: where there are sure calls and nothing else, what is not decided is no content.
func (p *Parser) tail() {
	if p.sure && p.eof {
		p.cutOff()
	}
}

// cutOff ends reading within a sure call, or beside one: what is not decided is the beginning of a mark.
func (p *Parser) cutOff() {
	p.sendCalls()
	p.pos = len(p.buf)
	p.mark, p.safe = p.pos, p.pos
	p.draft.live, p.quiet = false, true
}
