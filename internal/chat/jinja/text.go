package jinja

import (
	"cmp"
	"slices"
	"strings"
)

// Span is a range of bytes of a text.
type Span struct{ Start, End int }

// Text is a string that is known better: what of it came from the request, and whether a filter made it
// safe for HTML. Where a string came from never changes what a template does or prints. A Value holds a
// *Text where there is something to know, else a string.
type Text struct {
	s     string
	whole bool   // all of it came from the request
	user  []Span // else these parts did: in order, not empty, not touching
	safe  bool   // a string that is added is escaped, as Jinja2's Markup does even where nothing else is escaped
}

// User makes a value of a string from the request.
func User(s string) Value { return Text{s: s, whole: true}.value() }

// UserExcept makes a value of a string from the request of which the given spans, in order, are trusted.
func UserExcept(s string, trusted []Span) Value {
	if len(trusted) == 0 {
		return User(s)
	}
	t, at := Text{s: s}, 0
	for _, span := range append(trusted, Span{len(s), len(s)}) {
		if span.Start > at {
			t.user = append(t.user, Span{at, span.Start})
		}
		at = max(at, span.End)
	}
	return t.value()
}

// String returns the string of a value that is one.
func String(v Value) (string, bool) {
	s, ok := plain(v).(string)
	return s, ok
}

// plain makes a string of a *Text.
func plain(v Value) Value {
	if t, ok := v.(*Text); ok {
		return t.s
	}
	return v
}

// textOf returns the text of a value that is a string.
func textOf(v Value) (Text, bool) {
	switch v := v.(type) {
	case string:
		return Text{s: v}, true
	case *Text:
		return *v, true
	}
	return Text{}, false
}

func isUser(v Value) bool {
	t, ok := v.(*Text)
	return ok && t.tainted()
}

func (t Text) tainted() bool { return t.whole || len(t.user) > 0 }

// value is the text as a Value.
func (t Text) value() Value {
	if t.s == "" && !t.safe || !t.tainted() && !t.safe {
		return t.s
	}
	return &t
}

// with is another string that was made of the whole text.
func (t Text) with(s string) Text { return Text{s: s, whole: t.tainted(), safe: t.safe} }

// cut is a part of the text.
func (t Text) cut(from, to int) Text {
	out := Text{s: t.s[from:to], whole: t.whole, safe: t.safe}
	if t.whole || len(t.user) == 0 || from == to {
		return out
	}
	// Whoever cuts a text into many parts cuts one with many spans.
	i, _ := slices.BinarySearchFunc(t.user, from, func(u Span, from int) int { return cmp.Compare(u.End, from+1) })
	for ; i < len(t.user) && t.user[i].Start < to; i++ {
		out.user = append(out.user, Span{max(t.user[i].Start, from) - from, min(t.user[i].End, to) - from})
	}
	return out.tidy()
}

// tidy notices that all of a text came from the request.
func (t Text) tidy() Text {
	if len(t.user) == 1 && t.user[0] == (Span{0, len(t.s)}) {
		t.whole, t.user = true, nil
	}
	return t
}

// each makes a text of what f makes of its parts, where f looks at one character at a time.
func (t Text) each(f func(string) string) Text {
	if t.whole || len(t.user) == 0 {
		return Text{s: f(t.s), whole: t.whole, safe: t.safe}
	}
	var w textWriter
	at := 0
	for _, u := range t.user {
		w.add(Text{s: f(t.s[at:u.Start])})
		w.add(Text{s: f(t.s[u.Start:u.End]), whole: true})
		at = u.End
	}
	w.add(Text{s: f(t.s[at:])})
	out := w.text()
	out.safe = t.safe
	return out
}

// concat is a followed by b.
func concat(a, b Text) Text {
	switch {
	case !a.tainted() && !b.tainted():
		return Text{s: a.s + b.s}
	case a.s == "":
		return b
	case b.s == "":
		return a
	case a.whole && b.whole:
		return Text{s: a.s + b.s, whole: true}
	}
	w := textWriter{user: make([]Span, 0, len(a.user)+len(b.user)+2)}
	w.b.Grow(len(a.s) + len(b.s))
	w.add(a)
	w.add(b)
	return w.text()
}

// textWriter builds a text.
type textWriter struct {
	b    strings.Builder
	user []Span
}

func (w *textWriter) add(t Text) {
	at := w.b.Len()
	w.b.WriteString(t.s)
	if t.whole {
		w.mark(at, w.b.Len())
		return
	}
	for _, u := range t.user {
		w.mark(at+u.Start, at+u.End)
	}
}

// mark says that the bytes from…to came from the request.
func (w *textWriter) mark(from, to int) {
	if n := len(w.user); n > 0 && w.user[n-1].End == from {
		w.user[n-1].End = to
	} else if from < to {
		w.user = append(w.user, Span{from, to})
	}
}

func (w *textWriter) text() Text { return Text{s: w.b.String(), user: w.user}.tidy() }

// spanBytes is the memory of a span.
const spanBytes = 16

// cost is the memory of a text.
func (t Text) cost() int { return len(t.s) + spanBytes*len(t.user) }
