package cfgtest

import (
	"bytes"
	"math/rand/v2"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// closing is the order of preference of bytes that bring JSON to its end.
const closing = "}]\"0123456789aeltrufsn:,-."

// Write is a random text of a grammar of JSON, which goes for its end behind soft bytes; false if it has none before
// hard bytes.
func Write(m *cfg.Machine, r *rand.Rand, soft, hard int) (text string, ok bool) {
	var out []byte
	at := m.Start()
	for len(out) < hard {
		m.Begin()
		var next []byte
		for c := range 256 {
			if m.Step(at, byte(c)) != cfg.Dead {
				next = append(next, byte(c))
			}
		}
		long := len(out) > soft
		if m.MayEnd(at) && (len(next) == 0 || long || r.IntN(4) == 0) {
			return string(out), true
		}
		if len(next) == 0 {
			break
		}
		c := choose(r, next, long)
		out, at = append(out, c), m.Step(at, c)
	}
	return string(out), false
}

// choose takes plain text and the structure of JSON for likelier than other bytes.
func choose(r *rand.Rand, next []byte, long bool) byte {
	if long && r.IntN(20) > 0 {
		for i := range len(closing) {
			if bytes.IndexByte(next, closing[i]) >= 0 {
				return closing[i]
			}
		}
	}
	var likely []byte
	for _, c := range next {
		if bytes.IndexByte([]byte(`"{}[]:,\`), c) >= 0 || 'a' <= c && c <= 'e' || '0' <= c && c <= '3' {
			likely = append(likely, c)
		}
	}
	if len(likely) > 0 && r.IntN(5) > 0 {
		next = likely
	}
	return next[r.IntN(len(next))]
}
