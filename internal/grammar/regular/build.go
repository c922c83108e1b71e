package regular

import "fmt"

// Regexp is the language of an ECMA-262 regular expression (edition 2025, flag u): of the texts that it
// matches as a whole, or, for a search, somewhere. Back references and look-behind are refused.
func (b *Builder) Regexp(pattern string, search bool) (*DFA, error) {
	n, err := read(pattern)
	if err != nil {
		return nil, err
	}
	if search && n.find(func(n *node) bool { return n.kind == kindAhead }) != nil {
		return b.searchAhead(n)
	}
	p, err := b.whole(n, search)
	if err != nil {
		return nil, err
	}
	return b.compile(p, atStart)
}

// mostPattern bounds the bytes of a pattern, and so what reading it takes.
const mostPattern = 64 << 10

// read reads a pattern that an automaton can match.
func read(pattern string) (*node, error) {
	if len(pattern) > mostPattern {
		return nil, &SyntaxError{Pattern: pattern, Offset: mostPattern, Message: fmt.Sprintf("more than %d bytes", mostPattern), Refused: true}
	}
	n, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	return n, refuse(pattern, n)
}

// whole makes the program of an expression, or of a search for it.
func (b *Builder) whole(n *node, search bool) (*program, error) {
	if search {
		return b.search(n)
	}
	return b.program(n)
}

// CheckRegexp says whether a pattern is a regular expression of ECMA-262, also one that no automaton can match.
func CheckRegexp(pattern string) error {
	_, err := (&parser{pattern: pattern, ecma: true}).parse()
	return err
}

// refuse names what no automaton can match.
func refuse(pattern string, n *node) error {
	bad := n.find(func(n *node) bool { return n.kind == kindBackReference || n.kind == kindBehind })
	if bad == nil {
		return nil
	}
	message := "look-behind cannot be enforced"
	if bad.kind == kindBackReference {
		message = "a back reference cannot be enforced"
	}
	return &SyntaxError{Pattern: pattern, Offset: bad.at, Message: message, Refused: true}
}

func (b *Builder) compileNode(n *node, at place) (*DFA, error) {
	p, err := b.program(n)
	if err != nil {
		return nil, err
	}
	return b.compile(p, at)
}

// Text is the language of all valid UTF-8.
func (b *Builder) Text() (*DFA, error) { return b.once("text", anything) }

// once makes a language the first time that it is asked for.
func (b *Builder) once(name string, make func() *node) (*DFA, error) {
	if d, ok := b.named[name]; ok {
		return d, nil
	}
	d, err := b.compileNode(make(), atStart)
	if err == nil {
		b.named[name] = d
	}
	return d, err
}

// Literal is the language of the given texts, which must be valid UTF-8.
func (b *Builder) Literal(texts ...string) (*DFA, error) {
	t := trieColumns(texts)
	add := func() int32 {
		for range t.columns {
			t.next = append(t.next, dead)
		}
		t.accept = append(t.accept, false)
		return int32(len(t.accept) - 1)
	}
	add()
	for _, text := range texts {
		state := int32(0)
		for i := range len(text) {
			cell := int(state)*t.columns + int(t.class[text[i]])
			if t.next[cell] < 0 {
				if err := b.room(len(t.accept)+1, t.columns); err != nil {
					return nil, err
				}
				n := add()
				t.next[cell] = n
			}
			state = t.next[cell]
		}
		t.accept[state] = true
		if err := b.step(len(text) + 1); err != nil {
			return nil, err
		}
	}
	return b.minimise(t)
}

// trieColumns is an automaton without states, with a column for each byte of the texts and one for the others.
func trieColumns(texts []string) *DFA {
	t := &DFA{columns: 1}
	for _, text := range texts {
		for i := range len(text) {
			if t.class[text[i]] == 0 && t.columns < 256 {
				t.class[text[i]] = uint8(t.columns)
				t.columns++
			}
		}
	}
	return t
}

// Length is the language of texts of min to max characters; max < 0: no end.
func (b *Builder) Length(min, max int) (*DFA, error) {
	return b.compileNode(repeat(setNode(allRunes), min, max), atStart)
}

// Repeat is the language of min to max texts of d in a row; max < 0: no end.
func (b *Builder) Repeat(d *DFA, min, max int) (*DFA, error) {
	return b.compileNode(repeat(dfaNode(d), min, max), atStart)
}

// Union is the language of the texts in any of the languages.
func (b *Builder) Union(languages ...*DFA) (*DFA, error) {
	n := either()
	for _, d := range languages {
		n.subs = append(n.subs, dfaNode(d))
	}
	return b.compileNode(n, atStart)
}
