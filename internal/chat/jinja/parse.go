package jinja

import "slices"

// parser makes statements and expressions of tokens.
type parser struct {
	tokens []token
	at     int
	depth  int
	loops  int  // loops that enclose the place
	uses   uses // of the macro that is read
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

func (p *parser) fail(format string, args ...any) error {
	return errorf("line %d: "+format, append([]any{p.peek().line}, args...)...)
}

// enter counts nesting; the caller calls leave.
func (p *parser) enter() error {
	if p.depth++; p.depth > 4*maxNesting {
		return p.fail("the template nests too deeply")
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) isOp(text string) bool {
	t := p.peek()
	return t.kind == tokOp && t.text == text
}

func (p *parser) isName(text string) bool {
	t := p.peek()
	return t.kind == tokName && t.text == text
}

// skipOp passes an operator if it is there.
func (p *parser) skipOp(text string) bool {
	if p.isOp(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) skipName(text string) bool {
	if p.isName(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expectOp(text string) error {
	if !p.skipOp(text) {
		return p.unexpected(text)
	}
	return nil
}

func (p *parser) unexpected(want string) error {
	t := p.peek()
	got := t.text
	switch t.kind {
	case tokEOF:
		got = "the end of the template"
	case tokVarEnd, tokBlockEnd:
		got = "the end of the tag"
	}
	return p.fail("found %q where %q belongs", got, want)
}

func (p *parser) name() (string, error) {
	if p.peek().kind != tokName {
		return "", p.unexpected("a name")
	}
	return p.next().text, nil
}

// endTag passes the end of a block tag.
func (p *parser) endTag() error {
	if p.peek().kind != tokBlockEnd {
		return p.unexpected("%}")
	}
	p.at++
	return nil
}

// block reads statements up to a tag with one of the names, which it leaves, or to the end.
func (p *parser) block(until ...string) ([]stmt, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var body []stmt
	for {
		switch t := p.peek(); t.kind {
		case tokEOF:
			if len(until) > 0 {
				return nil, p.unexpected(until[len(until)-1])
			}
			return body, nil
		case tokText:
			p.at++
			body = append(body, textStmt(t.text))
		case tokVarBegin:
			p.at++
			e, err := p.tuple()
			if err != nil {
				return nil, err
			}
			if p.peek().kind != tokVarEnd {
				return nil, p.unexpected("}}")
			}
			p.at++
			body = append(body, &outputStmt{e, t.line})
		case tokBlockBegin:
			word := p.tokens[p.at+1]
			if word.kind == tokName && slices.Contains(until, word.text) {
				return body, nil
			}
			p.at++
			s, err := p.statement()
			if err != nil {
				return nil, err
			}
			body = append(body, s)
		default:
			return nil, p.unexpected("a tag")
		}
	}
}

// closed reads a body up to an end tag, and passes that.
func (p *parser) closed(end string) ([]stmt, error) {
	if err := p.endTag(); err != nil {
		return nil, err
	}
	body, err := p.block(end)
	if err != nil {
		return nil, err
	}
	p.at += 2
	if p.peek().kind == tokName { // {% endblock name %}
		p.at++
	}
	return body, p.endTag()
}

func (p *parser) statement() (stmt, error) {
	line := p.peek().line
	word, err := p.name()
	if err != nil {
		return nil, err
	}
	var s stmt
	switch word {
	case "if":
		s, err = p.ifStmt()
	case "for":
		s, err = p.forStmt()
	case "set":
		s, err = p.setStmt()
	case "macro":
		s, err = p.macroStmt()
	case "call":
		s, err = p.callStmt()
	case "filter":
		s, err = p.filterStmt()
	case "with":
		s, err = p.withStmt()
	case "generation":
		var body []stmt
		body, err = p.closed("endgeneration")
		s = &withStmt{body: body}
	case "autoescape":
		s, err = p.autoescapeStmt()
	case "include", "import", "from", "extends":
		return nil, p.fail("%s is not possible: a chat template stands alone", word)
	case "block":
		s, err = p.blockStmt()
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.fail("%s outside a loop", word)
		}
		s, err = jump(word), p.endTag()
	default:
		return nil, p.fail("unknown tag %q", word)
	}
	if err != nil {
		return nil, err
	}
	return &lined{s, line}, nil
}

func (p *parser) blockStmt() (stmt, error) {
	if _, err := p.name(); err != nil {
		return nil, err
	}
	for p.skipName("scoped") || p.skipName("required") {
	}
	body, err := p.closed("endblock")
	return &withStmt{body: body}, err
}

// autoescapeStmt takes only false: chat templates are no HTML.
func (p *parser) autoescapeStmt() (stmt, error) {
	if !p.skipName("false") && !p.skipName("False") {
		return nil, p.fail("autoescape is not possible: a prompt is no HTML")
	}
	body, err := p.closed("endautoescape")
	return &withStmt{body: body}, err
}

func (p *parser) ifStmt() (stmt, error) {
	s := &ifStmt{}
	for {
		test, err := p.tuple()
		if err != nil {
			return nil, err
		}
		if err := p.endTag(); err != nil {
			return nil, err
		}
		body, err := p.block("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.tests, s.bodies = append(s.tests, test), append(s.bodies, body)
		p.at++
		switch p.next().text {
		case "elif":
			continue
		case "else":
			if err := p.endTag(); err != nil {
				return nil, err
			}
			if s.otherwise, err = p.block("endif"); err != nil {
				return nil, err
			}
			p.at += 2
		}
		return s, p.endTag()
	}
}

func (p *parser) forStmt() (stmt, error) {
	s := &forStmt{}
	var err error
	if s.target, err = p.target(); err != nil {
		return nil, err
	}
	if !p.skipName("in") {
		return nil, p.unexpected("in")
	}
	if s.iter, err = p.tupleNoCond(); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		if s.filter, err = p.expression(); err != nil {
			return nil, err
		}
	}
	s.recursive = p.skipName("recursive")
	if err := p.endTag(); err != nil {
		return nil, err
	}
	p.loops++
	s.body, err = p.block("else", "endfor")
	p.loops--
	if err != nil {
		return nil, err
	}
	p.at++
	if p.next().text == "else" {
		if err := p.endTag(); err != nil {
			return nil, err
		}
		if s.otherwise, err = p.block("endfor"); err != nil {
			return nil, err
		}
		p.at += 2
	}
	return s, p.endTag()
}

// target reads what is assigned to: a name, an attribute of a namespace, or several.
func (p *parser) target() (target, error) {
	one := func() (target, error) {
		if p.skipOp("(") {
			t, err := p.target()
			if err != nil {
				return target{}, err
			}
			return t, p.expectOp(")")
		}
		name, err := p.name()
		if err != nil {
			return target{}, err
		}
		t := target{name: name}
		if p.skipOp(".") {
			t.attr, err = p.name()
		}
		return t, err
	}
	if err := p.enter(); err != nil {
		return target{}, err
	}
	defer p.leave()
	first, err := one()
	if err != nil || !p.isOp(",") {
		return first, err
	}
	all := target{parts: []target{first}}
	for p.skipOp(",") {
		if p.peek().kind != tokName && !p.isOp("(") || p.isName("in") {
			break
		}
		t, err := one()
		if err != nil {
			return target{}, err
		}
		all.parts = append(all.parts, t)
	}
	return all, nil
}

func (p *parser) setStmt() (stmt, error) {
	t, err := p.target()
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		value, err := p.tuple()
		if err != nil {
			return nil, err
		}
		return &setStmt{t, value}, p.endTag()
	}
	var filter expr = &placeholder{}
	if p.isOp("|") {
		if filter, err = p.filters(filter); err != nil {
			return nil, err
		}
	}
	body, err := p.closed("endset")
	return &setBlock{t, filter, body}, err
}

// params reads the parameters of a macro or a call block; the opening bracket has been passed.
func (p *parser) params() ([]param, error) {
	var list []param
	for !p.skipOp(")") {
		if len(list) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.skipOp(")") {
				break
			}
		}
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		one := param{name: name}
		if p.skipOp("=") {
			if one.value, err = p.expression(); err != nil {
				return nil, err
			}
		}
		list = append(list, one)
	}
	return list, nil
}

func (p *parser) macroStmt() (stmt, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	m := &macroStmt{name: name}
	if err := p.expectOp("("); err != nil {
		return nil, err
	}
	if m.params, err = p.params(); err != nil {
		return nil, err
	}
	m.body, err = p.function("endmacro", &m.uses)
	return m, err
}

// function reads a body in which the loops outside do not count.
func (p *parser) function(end string, inside *uses) ([]stmt, error) {
	loops, outside := p.loops, p.uses
	p.loops, p.uses = 0, uses{}
	body, err := p.closed(end)
	*inside = p.uses
	p.loops = loops
	p.uses = uses{outside.varargs || inside.varargs, outside.kwargs || inside.kwargs, outside.caller || inside.caller}
	return body, err
}

func (p *parser) callStmt() (stmt, error) {
	c := &callStmt{caller: macroStmt{name: "caller"}}
	var err error
	if p.skipOp("(") {
		if c.caller.params, err = p.params(); err != nil {
			return nil, err
		}
	}
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	call, ok := e.(*callExpr)
	if !ok {
		return nil, p.fail("a call block needs a call")
	}
	c.call = call
	c.caller.body, err = p.function("endcall", &c.caller.uses)
	return c, err
}

func (p *parser) filterStmt() (stmt, error) {
	p.at-- // the word filter takes the place of the | before a filter
	p.tokens[p.at] = token{tokOp, "|", p.peek().line}
	e, err := p.filters(&placeholder{})
	if err != nil {
		return nil, err
	}
	body, err := p.closed("endfilter")
	return &filterStmt{e, body}, err
}

func (p *parser) withStmt() (stmt, error) {
	w := &withStmt{}
	for p.peek().kind != tokBlockEnd {
		if len(w.targets) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		t, err := p.target()
		if err != nil {
			return nil, err
		}
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		w.targets, w.values = append(w.targets, t), append(w.values, e)
	}
	var err error
	w.body, err = p.closed("endwith")
	return w, err
}
