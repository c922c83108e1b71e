package spillway

import (
	"time"

	"github.com/spillway/spillway/internal/kv"
)

// Stats is what a model does and has done since Start; a snapshot for metrics.
type Stats struct {
	Running, Waiting int              // requests now
	Preempted        int64            // times that a running request gave way and was computed again later
	Finished         map[string]int64 // requests that ended, by FinishReason

	Blocks, BlocksUsed, BlocksIdle int   // of the key-value cache: there are, held by requests, kept for prefixes to come
	BlockTokens                    int   // positions of a block
	PrefixQueried, PrefixHit       int64 // tokens of prompts that were looked for, and found
	Evictions                      int64 // idle blocks that made room

	PromptTokens, AnswerTokens int64 // rows of prompts that were computed, tokens of answers that were given out
	Steps                      int64
	StepTime                   time.Duration // that the steps took
	AnswerSteps                int64         // of them, those without rows of prompts
	AnswerTime                 time.Duration
	SweepWaits                 int64 // times that a sweep waited for more requests to share it
	SweepWaited                time.Duration

	Constraints ConstraintStats
}

// ConstraintStats count what structured output took.
type ConstraintStats struct {
	Compiled, CacheHits, Refused int64 // forms that were compiled, found compiled, and refused
	CompileTime                  time.Duration
	Masks                        int64 // of tokens that may come next
	MaskTime                     time.Duration
	Forced                       int64 // tokens that needed no step to be chosen
}

// Stats returns what the model does now and has done since Start.
func (m *Model) Stats() Stats {
	s, f := m.engine.State(), m.forms.stats()
	return Stats{
		Running: s.Running, Waiting: s.Waiting, Preempted: s.Preempted,
		Finished: map[string]int64{
			FinishStop: s.Stopped, FinishLength: s.Lengths, FinishCancelled: s.Cancels, FinishDeadline: s.Expiries, FinishError: s.Failures,
		},
		Blocks: s.Cache.Blocks, BlocksUsed: s.Cache.Used, BlocksIdle: s.Cache.Idle, BlockTokens: kv.BlockTokens,
		PrefixQueried: s.Cache.Queried, PrefixHit: s.Cache.Hit, Evictions: s.Cache.Evictions,
		PromptTokens: s.PromptRows, AnswerTokens: s.Tokens, Steps: s.Steps, StepTime: s.StepTime, AnswerSteps: s.AnswerSteps, AnswerTime: s.AnswerTime,
		SweepWaits: s.SweepWaits, SweepWaited: s.SweepWaited,
		Constraints: ConstraintStats{
			Compiled: f.Compiled, CacheHits: f.Hits, Refused: f.Refused, CompileTime: f.Compiling, Masks: s.Masks, MaskTime: s.MaskTime, Forced: s.Forced,
		},
	}
}
