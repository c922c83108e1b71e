package schema

import (
	"sync"

	"github.com/spillway/spillway/internal/grammar/regular"
)

// shared holds the languages that are the same for all schemas: formats, all texts, all numbers. There
// are a few dozen, each made when some schema asks for it first.
var shared languages

type languages struct {
	mu   sync.Mutex
	made map[string]*regular.DFA
}

// get is the language of a name; what build gives without error, and not nil, is kept.
func (l *languages) get(name string, build func() (*regular.DFA, error)) (*regular.DFA, error) {
	l.mu.Lock()
	d := l.made[name]
	l.mu.Unlock()
	if d != nil {
		return d, nil
	}
	d, err := build()
	if d == nil || err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil {
		l.made = map[string]*regular.DFA{}
	}
	l.made[name] = d
	return d, nil
}

// spelledText is the texts of least to most characters, -1 being no bound, as JSON spells them; name
// names these and the spelling.
func (c *compiler) spelledText(name string, least, most int, spelling regular.Spelling) (*regular.DFA, error) {
	return shared.get(name, func() (*regular.DFA, error) {
		d, err := c.words.Length(least, most)
		if err != nil {
			return nil, err
		}
		return c.words.JSONString(d, spelling)
	})
}
