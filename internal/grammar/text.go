package grammar

import (
	"fmt"
	"strings"
)

// search is the automaton that finds words in text (Aho and Corasick, 1975): a state is the longest end of
// the text so far that begins a word.
type search struct {
	next  [][256]int32
	match []int32 // the word that ends at a state; -1: none
}

// maxSearch bounds the length of all words together.
const maxSearch = 1 << 12

func newSearch(words []string) (*search, error) {
	s := &search{}
	s.add()
	size := 0
	for i, w := range words {
		if size += len(w); size > maxSearch {
			return nil, fmt.Errorf("grammar: texts to look for of more than %d bytes together", maxSearch)
		}
		if w == "" {
			return nil, fmt.Errorf("grammar: a text to look for is empty")
		}
		at := int32(0)
		for _, b := range []byte(w) {
			if s.next[at][b] == 0 {
				s.next[at][b] = s.add()
			}
			at = s.next[at][b]
		}
		if s.match[at] < 0 {
			s.match[at] = int32(i)
		}
	}
	s.link()
	return s, nil
}

func (s *search) add() int32 {
	s.next = append(s.next, [256]int32{})
	s.match = append(s.match, -1)
	return int32(len(s.next) - 1)
}

// link sets the moves that do not go on with a word, level by level.
func (s *search) link() {
	fall := make([]int32, len(s.next))
	var queue []int32
	for _, q := range s.next[0] {
		if q > 0 {
			queue = append(queue, q)
		}
	}
	for len(queue) > 0 {
		q := queue[0]
		queue = queue[1:]
		if s.match[q] < 0 {
			s.match[q] = s.match[fall[q]]
		}
		for b := range 256 {
			to := &s.next[q][b]
			if *to == 0 {
				*to = s.next[fall[q]][b]
				continue
			}
			fall[*to] = s.next[fall[q]][b]
			queue = append(queue, *to)
		}
	}
}

// freeText is all texts without any of the words.
type freeText struct{ *search }

func (f freeText) Start() int { return 0 }
func (f freeText) Next(q int, c byte) int {
	to := f.next[q][c]
	if f.match[to] >= 0 {
		return -1
	}
	return int(to)
}
func (f freeText) Accepting(int) bool { return true }

// textUntil is all texts that end with a word, and have it or any other word nowhere before.
type textUntil struct {
	*search
	word int32
}

func (t textUntil) Start() int { return 0 }
func (t textUntil) Next(q int, c byte) int {
	to := t.next[q][c]
	if t.match[q] >= 0 || t.match[to] >= 0 && t.match[to] != t.word {
		return -1
	}
	return int(to)
}
func (t textUntil) Accepting(q int) bool { return t.match[q] == t.word }

// within returns a word of others that is part of word.
func within(word string, others []string) (string, bool) {
	for _, o := range others {
		if o != word && strings.Contains(word, o) {
			return o, true
		}
	}
	return "", false
}
