package schema

import (
	"github.com/spillway/spillway/internal/grammar/regular"
)

// Limits of languages with bounded lengths.
const (
	maxCut  = 4_000 // states of the automaton that keeps the bound
	minKept = 48    // characters; a bound is not lowered below
)

// cut puts the bounds into the language. Where that would take too many states the upper bound is
// lowered: what is written is less than what is valid. whole says that it is not.
func (c *compiler) cut(t *textForm, at stringPart, as reading) (whole bool, err error) {
	if t.min == 0 && t.max < 0 {
		return true, nil
	}
	if ok, err := c.repeatOneChar(t); ok || err != nil {
		return true, err
	}
	most, whole := charsWithin(t.language, max(t.min, t.max))
	if !whole && at.keyword == "format" && as == forWriting {
		if err := c.withoutBrackets(t); err != nil {
			return false, err
		}
		most, _ = charsWithin(t.language, max(t.min, t.max))
	}
	if !whole && as == allOfIt {
		return false, nil
	}
	most = max(most, minKept)
	if t.max >= 0 {
		most = min(most, t.max)
	} else if whole {
		most = -1
	}
	if most >= 0 && t.min > most {
		return false, c.cutError(at, "would take too many states")
	}
	if t.language, err = c.words.Bounded(t.language, t.min, most); err != nil {
		return false, c.cutError(at, err.Error())
	}
	return whole, nil
}

func (c *compiler) cutError(at stringPart, why string) error {
	if at.s == nil {
		return limitError("minLength and maxLength together with excluded strings: %s", why)
	}
	return Refuse(at.s, at.keyword, "together with minLength and maxLength: %s", why)
}

// withoutBrackets leaves out the strings with brackets: the IPv6 addresses in URIs, which have most
// of the states.
func (c *compiler) withoutBrackets(t *textForm) error {
	d, err := c.pattern(`^[^[\]]*$`)
	if err != nil {
		return err
	}
	less, err := c.intersect(t.language, d)
	if err == nil && !less.Empty() {
		t.language = less
	}
	return err
}

// charsWithin is how many characters, most at most, can be counted beside an automaton with maxCut
// states in all; whole says that most can.
func charsWithin(d *regular.DFA, most int) (chars int, whole bool) {
	steps := make([]charSteps, d.States())
	for state := range steps {
		steps[state] = stepsOf(d, state)
	}
	at, seen := []int{d.Start()}, make([]int, d.States()) // seen: at which count a state was reached last
	for states := 0; chars < most && len(at) > 0; chars++ {
		var next []int
		for _, state := range at {
			states += steps[state].cost
			for _, to := range steps[state].to {
				if seen[to] <= chars {
					seen[to] = chars + 1
					next = append(next, to)
				}
			}
		}
		if states > maxCut {
			return chars, false
		}
		at = next
	}
	return most, true
}

// charSteps are the states one character after a state, and how many states that takes.
type charSteps struct {
	to   []int
	cost int
}

func stepsOf(d *regular.DFA, from int) charSteps {
	out := charSteps{cost: 1}
	type inside struct{ state, left int } // left bytes of the character are to come
	seen := map[inside]bool{}
	todo := []inside{{from, -1}}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		d.Edges(at.state, func(lo, _ byte, to int) {
			next := inside{to, at.left - 1}
			if at.left < 0 {
				next.left = continuations(lo)
			}
			if seen[next] {
				return
			}
			seen[next] = true
			if next.left == 0 {
				out.to = append(out.to, to)
			} else {
				out.cost++
				todo = append(todo, next)
			}
		})
	}
	return out
}

// continuations is how many bytes follow the first one of a character.
func continuations(first byte) int {
	switch {
	case first < 0x80:
		return 0
	case first < 0xe0:
		return 1
	case first < 0xf0:
		return 2
	}
	return 3
}

// length is the texts of least to most characters.
func (c *compiler) length(least, most int) (*regular.DFA, error) {
	key := [2]int{least, most}
	if d := c.lengths[key]; d != nil {
		return d, nil
	}
	d, err := c.words.Length(least, most)
	if err == nil {
		c.lengths[key] = d
	}
	return d, err
}

// repeatOneChar sees languages that are some number of characters of one set, as in ^[a-z]{1,64}$:
// these are counted, not written out.
func (c *compiler) repeatOneChar(t *textForm) (bool, error) {
	single, err := c.length(1, 1)
	if err != nil {
		return false, err
	}
	char, err := c.words.Intersect(t.language, single)
	if err != nil || char.Empty() {
		return false, err
	}
	example, _ := char.Shortest()
	least, most, ok := countOf(t.language, example)
	if !ok {
		return false, nil
	}
	same, err := c.words.Repeat(char, least, most)
	if err != nil {
		return false, err
	}
	if !same.Equal(t.language) {
		return false, nil
	}
	t.min = max(t.min, least)
	if most >= 0 && (t.max < 0 || most < t.max) {
		t.max = most
	}
	t.char = char
	if t.max >= 0 && t.min > t.max {
		t.language, err = c.words.Literal()
	}
	return true, err
}

// countOf is how often an example may be repeated in a language: from least on up to most, without
// a gap; most < 0 is without an end.
func countOf(d *regular.DFA, example string) (least, most int, ok bool) {
	least, state := -1, d.Start()
	seen := make([]bool, d.States())
	for n := 0; ; n++ {
		if d.Accepting(state) {
			if least < 0 {
				least = n
			}
		} else if least >= 0 {
			return 0, 0, false
		}
		if seen[state] {
			return least, -1, least >= 0
		}
		seen[state] = true
		for i := range len(example) {
			if state = d.Next(state, example[i]); state < 0 {
				return least, n, least >= 0
			}
		}
	}
}
