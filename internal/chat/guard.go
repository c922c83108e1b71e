package chat

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

// The engine has no limits of its own, so a template is given hooks: each pass of a loop and each call of
// a macro calls one, which counts steps, looks at the clock and knows how deep macros call each other.
// What a hook cannot see is not bounded: one expression that makes a huge string ("a" * 10**9), and
// printing a list that contains itself.

const (
	maxSteps    = 2_000_000 // passes of loops and calls of macros
	maxCalls    = 100       // macros that call each other
	maxBrackets = 100       // nested brackets in an expression
	maxBlocks   = 100       // nested blocks
	maxRange    = 100_000   // elements of range()
)

// hookNames are the names of the hooks; random, so that no template can know them.
type hookNames struct{ step, enter, leave string }

// guard writes the hooks into a template's loops and macros and refuses what nests too deeply.
func guard(source string) (string, hookNames, error) {
	id := strings.ToLower(rand.Text())
	names := hookNames{"step_" + id, "enter_" + id, "leave_" + id}
	var out strings.Builder
	done, blocks := 0, 0
	for at := 0; ; {
		start, end, body := nextTag(source, at)
		if start < 0 {
			break
		}
		if nesting(source[start:end]) > maxBrackets {
			return "", names, fmt.Errorf("the chat template nests brackets more than %d deep", maxBrackets)
		}
		before, after := names.around(source[start:start+2], body)
		out.WriteString(source[done:start])
		out.WriteString(before)
		out.WriteString(source[start:end])
		out.WriteString(after)
		if after != "" || strings.HasPrefix(body, "if") {
			if blocks++; blocks > maxBlocks {
				return "", names, fmt.Errorf("the chat template nests blocks more than %d deep", maxBlocks)
			}
		} else if strings.HasPrefix(body, "end") {
			blocks = max(blocks-1, 0)
		}
		at, done = end, end
	}
	out.WriteString(source[done:])
	return out.String(), names, nil
}

// around returns what belongs before and after a tag. An expression is not touched by the trimming of
// white space around block tags.
func (n hookNames) around(open, body string) (before, after string) {
	if open != "{%" {
		return "", ""
	}
	word := body
	if end := strings.IndexFunc(body, func(r rune) bool { return r < 'a' || r > 'z' }); end >= 0 {
		word = body[:end]
	}
	switch word {
	case "for":
		return "", "{{" + n.step + "()}}"
	case "macro", "call":
		return "", "{{" + n.enter + "()}}"
	case "endmacro", "endcall":
		return "{{" + n.leave + "()}}", ""
	}
	return "", ""
}

// nextTag returns the next tag from at on, and its content without white space and trim marks. Quotes
// hide the end of a tag, as in the engine.
func nextTag(s string, at int) (start, end int, body string) {
	for ; at+1 < len(s); at++ {
		if s[at] != '{' || s[at+1] != '%' && s[at+1] != '{' && s[at+1] != '#' {
			continue
		}
		closer := map[byte]string{'%': "%}", '{': "}}", '#': "#}"}[s[at+1]]
		i := at + 2
		for i < len(s) && !strings.HasPrefix(s[i:], closer) {
			if c := s[i]; closer != "#}" && (c == '\'' || c == '"') {
				i = skipQuoted(s, i)
				continue
			}
			i++
		}
		if i >= len(s) {
			return -1, -1, "" // the engine reports it
		}
		return at, i + 2, strings.Trim(s[at+2:i], " \t\r\n-+")
	}
	return -1, -1, ""
}

// skipQuoted returns the index after the string that begins at i.
func skipQuoted(s string, i int) int {
	quote := s[i]
	for i++; i < len(s) && s[i] != quote; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(s))
}

// nesting returns how deep the brackets of a tag nest.
func nesting(tag string) int {
	depth, most := 0, 0
	for i := 0; i < len(tag); i++ {
		switch tag[i] {
		case '(', '[', '{':
			depth++
			most = max(most, depth)
		case ')', ']', '}':
			depth--
		}
	}
	// Chains of prefix operators nest too.
	return max(most, strings.Count(tag, "not ")/4, strings.Count(tag, "-")/8)
}

// watcher counts what one rendering does.
type watcher struct {
	deadline     time.Time
	steps, depth int
}

var errTooLong = errors.New("it runs for too long")

func (w *watcher) step() error {
	if w.steps++; w.steps > maxSteps || w.steps%256 == 0 && time.Now().After(w.deadline) {
		return errTooLong
	}
	return nil
}

func (w *watcher) hooks(names hookNames) map[string]jinja.Value {
	hook := func(f func() error) jinja.Value {
		return jinja.NewCallable("hook", func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
			return jinja.NewString(""), f()
		})
	}
	return map[string]jinja.Value{
		names.step: hook(w.step),
		names.enter: hook(func() error {
			if w.depth++; w.depth > maxCalls {
				return fmt.Errorf("its macros call each other more than %d deep", maxCalls)
			}
			return w.step()
		}),
		names.leave: hook(func() error { w.depth--; return nil }),
		"range":     jinja.NewCallable("range", boundedRange),
	}
}

// run renders. A panic of the engine is an error of the template.
func (w *watcher) run(t *jinja.Template, data map[string]jinja.Value) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it makes the engine fail: %v", r)
		}
	}()
	return t.RenderValues(data)
}

// boundedRange is Python's range, with a limit.
func boundedRange(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	bounds := [3]int64{0, 0, 1}
	if len(args) == 0 || len(args) > 3 {
		return jinja.None(), fmt.Errorf("range takes 1 to 3 numbers, not %d", len(args))
	}
	for i, a := range args {
		if !a.IsInt() {
			return jinja.None(), errors.New("range takes whole numbers")
		}
		bounds[i] = a.AsInt()
	}
	if len(args) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	if bounds[2] == 0 {
		return jinja.None(), errors.New("range needs a step that is not 0")
	}
	var items []jinja.Value
	for i := bounds[0]; bounds[2] > 0 && i < bounds[1] || bounds[2] < 0 && i > bounds[1]; i += bounds[2] {
		if len(items) == maxRange {
			return jinja.None(), fmt.Errorf("range has more than %d elements", maxRange)
		}
		items = append(items, jinja.NewInt(i))
	}
	return jinja.NewList(items), nil
}
