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

// TestBesidePeers compares processor times with those of other engines, from a file of bench/grammars/times.py that SPILLWAY_GRAMMAR_PEERS names.
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
	const rounds = 5
	var ours, theirs peerTimes
	for round := range rounds {
		var s peerSums
		for i := range cases {
			s.run(t, vocab, &cases[i], i, round == 1)
		}
		t.Logf("round %d: %d schemas, %d tokens; compile %s; masks %s; accept %s", round, s.n, len(s.masks),
			summary(s.compiles), summary(s.masks), summary(s.accepts))
		ours.add(sum(s.compiles), sum(s.masks))
		theirs.add(s.peerCompile, s.peerMask)
	}
	t.Logf("mean of the rounds: compile %.0f ms beside %.0f: %.2f of its speed; masks %.0f ms beside %.0f: %.2f; together %.2f; shared %d in %d bytes",
		1e3*ours.compile/rounds, 1e3*theirs.compile/rounds, theirs.compile/ours.compile, 1e3*ours.masks/rounds, 1e3*theirs.masks/rounds,
		theirs.masks/ours.masks, (theirs.compile+theirs.masks)/(ours.compile+ours.masks), len(vocab.shared.masks), vocab.shared.bytes)
}

type peerTimes struct{ compile, masks float64 } // seconds

func (p *peerTimes) add(compile, masks float64) {
	p.compile += compile
	p.masks += masks
}

func sum(all []time.Duration) float64 {
	var s time.Duration
	for _, d := range all {
		s += d
	}
	return s.Seconds()
}

type peerSums struct {
	n                        int
	compiles, masks, accepts []time.Duration
	peerCompile, peerMask    float64
}

func (s *peerSums) run(t *testing.T, vocab *Vocabulary, c *peerCase, i int, verbose bool) {
	begin := processorTime()
	con, err := Compile(Source{Kind: JSONSchema, Text: c.Schema}, vocab, cfg.Limits{})
	took := processorTime() - begin
	if err != nil {
		t.Logf("schema %d: %v", i, err)
		return
	}
	m := con.Matcher()
	mask := make([]uint64, vocab.Words())
	var masks, accepts []time.Duration
	for k, id := range c.IDs {
		begin := processorTime()
		m.Mask(mask)
		masks = append(masks, processorTime()-begin)
		begin = processorTime()
		if err := m.Accept(id); err != nil {
			if c.LL.OK && verbose {
				t.Logf("schema %d, token %d of %s: %v", i, k, c.Text, err)
			}
			return
		}
		accepts = append(accepts, processorTime()-begin)
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
