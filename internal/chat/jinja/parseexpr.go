package jinja

import (
	"slices"
	"strconv"
)

// tuple reads an expression, or several with commas between, which make a tuple.
func (p *parser) tuple() (expr, error) { return p.tupleOf(p.expression) }

// tupleNoCond is for what follows "in" of a loop, where "if" begins the loop's own filter.
func (p *parser) tupleNoCond() (expr, error) { return p.tupleOf(p.or) }

func (p *parser) tupleOf(read func() (expr, error)) (expr, error) {
	first, err := read()
	if err != nil || !p.isOp(",") {
		return first, err
	}
	items := []expr{first}
	for p.skipOp(",") {
		if p.endOfTuple() {
			break
		}
		e, err := read()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
	return &listExpr{items, true}, nil
}

func (p *parser) endOfTuple() bool {
	switch t := p.peek(); t.kind {
	case tokVarEnd, tokBlockEnd, tokEOF:
		return true
	case tokOp:
		return t.text == ")" || t.text == "="
	}
	return false
}

// expression reads "a if b else c" and everything that binds tighter.
func (p *parser) expression() (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	e, err := p.or()
	for err == nil && p.skipName("if") {
		c := &condExpr{yes: e}
		if c.test, err = p.or(); err != nil {
			return nil, err
		}
		if p.skipName("else") {
			if c.no, err = p.expression(); err != nil {
				return nil, err
			}
		}
		e = c
	}
	return e, err
}

// binary reads operands of read with operators between, which bind to the left.
func (p *parser) binary(read func() (expr, error), ops ...string) (expr, error) {
	left, err := read()
	for err == nil {
		t := p.peek()
		if t.kind != tokOp || !slices.Contains(ops, t.text) {
			return left, nil
		}
		if err := p.grow(&left); err != nil {
			return nil, err
		}
		p.at++
		var right expr
		if right, err = read(); err == nil {
			left = &binaryExpr{t.text, left, right}
		}
	}
	return nil, err
}

// grow refuses chains of operators that nest too deeply to be run.
func (p *parser) grow(e *expr) error {
	if depthOf(*e) > 10*maxNesting {
		return p.fail("an expression is too long")
	}
	return nil
}

// depthOf is how deep the left side of an expression nests.
func depthOf(e expr) int {
	for n := 0; ; n++ {
		switch x := e.(type) {
		case *binaryExpr:
			e = x.left
		case *logicExpr:
			e = x.left
		case *filterExpr:
			e = x.input
		case *attrExpr:
			e = x.object
		case *itemExpr:
			e = x.object
		case *sliceExpr:
			e = x.object
		case *callExpr:
			e = x.fn
		case *testExpr:
			e = x.input
		default:
			return n
		}
	}
}

func (p *parser) or() (expr, error)  { return p.logic(p.and, "or") }
func (p *parser) and() (expr, error) { return p.logic(p.not, "and") }

func (p *parser) logic(read func() (expr, error), op string) (expr, error) {
	left, err := read()
	for err == nil && p.isName(op) {
		if err := p.grow(&left); err != nil {
			return nil, err
		}
		p.at++
		var right expr
		if right, err = read(); err == nil {
			left = &logicExpr{op == "or", left, right}
		}
	}
	return left, err
}

func (p *parser) not() (expr, error) {
	if !p.isName("not") {
		return p.comparison()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.at++
	e, err := p.not()
	return &notExpr{e}, err
}

func (p *parser) comparison() (expr, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := &compareExpr{first: first}
	for {
		t, op := p.peek(), ""
		switch {
		case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text):
			op = t.text
			p.at++
		case p.skipName("in"):
			op = "in"
		case p.isName("not") && p.tokens[p.at+1].kind == tokName && p.tokens[p.at+1].text == "in":
			op = "not in"
			p.at += 2
		}
		if op == "" {
			break
		}
		e, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, e)
	}
	if len(c.ops) == 0 {
		return first, nil
	}
	return c, nil
}

func (p *parser) sum() (expr, error)    { return p.binary(p.concat, "+", "-") }
func (p *parser) concat() (expr, error) { return p.binary(p.product, "~") }
func (p *parser) product() (expr, error) {
	return p.binary(p.power, "*", "/", "//", "%")
}
func (p *parser) power() (expr, error) {
	return p.binary(func() (expr, error) { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var e expr
	var err error
	if t := p.peek(); t.kind == tokOp && (t.text == "-" || t.text == "+") {
		p.at++
		if e, err = p.unary(false); err == nil {
			e = &signExpr{t.text == "-", e}
		}
	} else {
		e, err = p.primary()
	}
	if err == nil {
		e, err = p.postfix(e)
	}
	if err == nil && filters {
		e, err = p.filters(e)
	}
	return e, err
}

// constants are the names of values.
var constants = map[string]Value{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) primary() (expr, error) {
	t := p.next()
	switch t.kind {
	case tokName:
		if v, ok := constants[t.text]; ok {
			return &constExpr{v}, nil
		}
		p.mention(t.text)
		return &nameExpr{t.text}, nil
	case tokString:
		text := t.text
		for p.peek().kind == tokString {
			text += p.next().text
		}
		return &constExpr{text}, nil
	case tokInt:
		i, err := strconv.ParseInt(t.text, literalBase(t.text), 64)
		if err != nil {
			return nil, p.fail("the number %s is too large", t.text)
		}
		return &constExpr{i}, nil
	case tokFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, p.fail("the number %s is too large", t.text)
		}
		return &constExpr{f}, nil
	case tokOp:
		switch t.text {
		case "(":
			return p.bracketed()
		case "[":
			items, err := p.items("]")
			return &listExpr{items, false}, err
		case "{":
			return p.dict()
		}
	}
	if t.kind != tokEOF {
		p.at--
	}
	return nil, p.unexpected("a value")
}

// mention remembers the special variables of macros.
func (p *parser) mention(name string) {
	switch name {
	case "varargs":
		p.uses.varargs = true
	case "kwargs":
		p.uses.kwargs = true
	case "caller":
		p.uses.caller = true
	}
}

// literalBase is 0 for numbers that say their own base, such as 0xff.
func literalBase(text string) int {
	if len(text) > 1 && text[0] == '0' && (text[1] > '9') {
		return 0
	}
	return 10
}

// bracketed reads what follows "(": an expression or a tuple.
func (p *parser) bracketed() (expr, error) {
	if p.skipOp(")") {
		return &listExpr{nil, true}, nil
	}
	e, err := p.tuple()
	if err != nil {
		return nil, err
	}
	return e, p.expectOp(")")
}

// items reads expressions up to a closing bracket.
func (p *parser) items(end string) ([]expr, error) {
	var items []expr
	for !p.skipOp(end) {
		if len(items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.skipOp(end) {
				break
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
	return items, nil
}

func (p *parser) dict() (expr, error) {
	d := &dictExpr{}
	for !p.skipOp("}") {
		if len(d.keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.skipOp("}") {
				break
			}
		}
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, key), append(d.values, value)
	}
	return d, nil
}

// postfix reads attributes, subscripts and calls.
func (p *parser) postfix(e expr) (expr, error) {
	for {
		if err := p.grow(&e); err != nil {
			return nil, err
		}
		switch {
		case p.skipOp("."):
			t := p.next()
			switch t.kind {
			case tokName:
				e = &attrExpr{e, t.text}
			case tokInt:
				i, err := strconv.ParseInt(t.text, 10, 64)
				if err != nil {
					return nil, p.fail("the number %s is too large", t.text)
				}
				e = &itemExpr{e, &constExpr{i}}
			default:
				return nil, p.fail("a name is missing after the dot")
			}
		case p.skipOp("["):
			var err error
			if e, err = p.subscript(e); err != nil {
				return nil, err
			}
		case p.skipOp("("):
			call := &callExpr{fn: e}
			if err := p.arguments(&call.arguments); err != nil {
				return nil, err
			}
			e = call
		default:
			return e, nil
		}
	}
}

func (p *parser) subscript(e expr) (expr, error) {
	var parts [3]expr
	n, colons := 0, 0
	for !p.skipOp("]") {
		if p.skipOp(":") {
			if colons++; colons > 2 {
				return nil, p.fail("a slice has at most three parts")
			}
			n = colons
			continue
		}
		if parts[n] != nil {
			return nil, p.unexpected("]")
		}
		part, err := p.expression()
		if err != nil {
			return nil, err
		}
		parts[n] = part
	}
	if colons > 0 {
		return &sliceExpr{e, parts}, nil
	}
	if parts[0] == nil {
		return nil, p.fail("a subscript is missing")
	}
	return &itemExpr{e, parts[0]}, nil
}

// arguments reads the arguments of a call; the opening bracket has been passed.
func (p *parser) arguments(into *arguments) error {
	for first := true; !p.skipOp(")"); first = false {
		if !first {
			if err := p.expectOp(","); err != nil {
				return err
			}
			if p.skipOp(")") {
				break
			}
		}
		switch {
		case p.skipOp("**"), p.skipOp("*"):
			star := p.tokens[p.at-1].text
			e, err := p.expression()
			if err != nil {
				return err
			}
			if star == "*" {
				into.list = e
			} else {
				into.dict = e
			}
		case p.peek().kind == tokName && p.tokens[p.at+1].kind == tokOp && p.tokens[p.at+1].text == "=":
			name := p.next().text
			p.at++
			e, err := p.expression()
			if err != nil {
				return err
			}
			into.names, into.named = append(into.names, name), append(into.named, e)
		default:
			e, err := p.expression()
			if err != nil {
				return err
			}
			into.args = append(into.args, e)
		}
	}
	return nil
}

// filters reads "| name(…)", "is name …" and calls of what they give.
func (p *parser) filters(e expr) (expr, error) {
	for {
		if err := p.grow(&e); err != nil {
			return nil, err
		}
		var err error
		switch {
		case p.skipOp("|"):
			f := &filterExpr{input: e}
			if f.name, err = p.dotted(); err != nil {
				return nil, err
			}
			if p.skipOp("(") {
				err = p.arguments(&f.arguments)
			}
			e = f
		case p.skipName("is"):
			e, err = p.test(e)
		case p.skipOp("("):
			call := &callExpr{fn: e}
			err = p.arguments(&call.arguments)
			e = call
		default:
			return e, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) dotted() (string, error) {
	name, err := p.name()
	for err == nil && p.skipOp(".") {
		var more string
		more, err = p.name()
		name += "." + more
	}
	return name, err
}

// test reads what follows "is".
func (p *parser) test(e expr) (expr, error) {
	t := &testExpr{input: e, negate: p.skipName("not")}
	var err error
	if t.name, err = p.dotted(); err != nil {
		return nil, err
	}
	switch next := p.peek(); {
	case p.skipOp("("):
		err = p.arguments(&t.arguments)
	case p.isName("is"):
		err = p.fail("tests cannot be chained with is")
	case next.kind == tokString, next.kind == tokInt, next.kind == tokFloat, p.isOp("["), p.isOp("{"),
		next.kind == tokName && !slices.Contains([]string{"else", "or", "and", "is", "if", "in", "not", "recursive"}, next.text):
		var arg expr
		if arg, err = p.primary(); err == nil {
			arg, err = p.postfix(arg)
		}
		t.args = []expr{arg}
	}
	return t, err
}
