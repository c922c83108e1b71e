package grammar

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// peerCase is a schema and an answer, and what other engines took for them: made by a script beside them.
type peerCase struct {
	Schema, Text string
	IDs          []int32
	LL, XG       struct {
		OK                    bool
		Compile, Mask, Accept float64 // seconds
	}
}

// TestBesidePeers compares times with those of other engines, from a file that SPILLWAY_GRAMMAR_PEERS names.
func TestBesidePeers(t *testing.T) {
	name := os.Getenv("SPILLWAY_GRAMMAR_PEERS")
	if name == "" {
		t.Skip("skipped: no SPILLWAY_GRAMMAR_PEERS")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var cases []peerCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	_, vocab := realVocabulary(t)
	for round := range 2 {
		var s peerSums
		for i := range cases {
			s.run(t, vocab, &cases[i], i, round == 1)
		}
		t.Logf("round %d: %d schemas, %d tokens; compile %s; masks %s; accept %s", round, s.n, len(s.masks),
			summary(s.compiles), summary(s.masks), summary(s.accepts))
		t.Logf("round %d: others on the same: compile %.1f ms, masks %.1f ms; shared %d in %d bytes", round, 1e3*s.peerCompile, 1e3*s.peerMask,
			len(vocab.shared.masks), vocab.shared.bytes)
	}
}

type peerSums struct {
	n                        int
	compiles, masks, accepts []time.Duration
	peerCompile, peerMask    float64
}

func (s *peerSums) run(t *testing.T, vocab *Vocabulary, c *peerCase, i int, verbose bool) {
	begin := time.Now()
	con, err := Compile(Source{Kind: JSONSchema, Text: c.Schema}, vocab, cfg.Limits{})
	took := time.Since(begin)
	if err != nil {
		t.Logf("schema %d: %v", i, err)
		return
	}
	m := con.Matcher()
	mask := make([]uint64, vocab.Words())
	var masks, accepts []time.Duration
	for k, id := range c.IDs {
		begin := time.Now()
		m.Mask(mask)
		masks = append(masks, time.Since(begin))
		begin = time.Now()
		if err := m.Accept(id); err != nil {
			if c.LL.OK && verbose {
				t.Logf("schema %d, token %d of %s: %v", i, k, c.Text, err)
			}
			return
		}
		accepts = append(accepts, time.Since(begin))
	}
	if !c.LL.OK {
		return
	}
	if worst := slices.Max(masks); verbose && (worst > 2*time.Millisecond || took > 20*time.Millisecond) {
		t.Logf("schema %d: compile %v, mask %v at token %d of %.300s", i, took, worst, slices.Index(masks, worst), c.Schema)
	}
	s.n++
	s.compiles, s.masks, s.accepts = append(s.compiles, took), append(s.masks, masks...), append(s.accepts, accepts...)
	s.peerCompile += c.LL.Compile
	s.peerMask += c.LL.Mask
}
