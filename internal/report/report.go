// Package report holds what a run remembers. One Report value is filled by the rooms' counters;
// JSON and prose are views of it. Nothing here prints.
package report

import (
	"encoding/json"
	"math"
)

// Report is one run. Its JSON form is that of `spillway run --json`. Bytes and seconds throughout.
type Report struct {
	Text         string `json:"text"`
	PromptIDs    []int  `json:"prompt_ids"`
	IDs          []int  `json:"ids"`
	FinishReason string `json:"finish_reason"` // stop, length, cancelled or error

	// Of a model that writes reasoning or calls in a dialect of its own: what of the text is content.
	Content   string `json:"content,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	ToolCalls any    `json:"tool_calls,omitempty"`

	Model    Model    `json:"model"`
	Memory   Memory   `json:"memory"`
	Speed    Speed    `json:"speed"`
	IO       IO       `json:"io"`
	Cache    Cache    `json:"cache"`
	Roofline Roofline `json:"roofline"`
	Experts  *Experts `json:"experts,omitempty"` // of a mixture of experts
	Form     *Form    `json:"form,omitempty"`    // of an answer that was held to one

	// Notes are remarks for the reader, such as why a fraction is not known.
	Notes []string `json:"notes,omitempty"`
}

// Model says what ran.
type Model struct {
	Name        string `json:"name"`
	Family      string `json:"family"`
	Parameters  int64  `json:"parameters"`
	WeightBytes int64  `json:"weight_bytes"`
	Source      string `json:"source"` // path, or "embedded"
	// ChatTemplate says where the chat template is from: "the model's (…)", or the name of a built-in one.
	ChatTemplate string `json:"chat_template,omitempty"`
}

// Cache says how keys and values were kept.
type Cache struct {
	Type  string `json:"type"`  // as --kv names it
	Lossy bool   `json:"lossy"` // it rounds more than f16, so that answers are other ones
}

// Memory compares the budget with what was used.
type Memory struct {
	Budget     int64  `json:"budget"`      // the hard cap
	LedgerPeak int64  `json:"ledger_peak"` // most bytes leased at once
	RSSPeak    int64  `json:"rss_peak"`    // most resident bytes of the process; 0 if unknown
	CgroupPeak *int64 `json:"cgroup_peak"` // the kernel's count for our group; nil if there is none of our own
	Least      int64  `json:"least"`       // the least budget that would have done
}

// Speed counts tokens and the time they took.
type Speed struct {
	LoadSeconds    float64 `json:"load_seconds"`
	PrefillTokens  int     `json:"prefill_tokens"`
	PrefillSeconds float64 `json:"prefill_seconds"`
	DecodeTokens   int     `json:"decode_tokens"`
	DecodeSeconds  float64 `json:"decode_seconds"`
}

// IO counts bytes of weights.
type IO struct {
	RequiredBytes       int64  `json:"required_bytes"` // the least that any policy must read at this budget; 0 if that is not known
	ReadBytes           int64  `json:"read_bytes"`     // read from the drive
	HitBytes            int64  `json:"hit_bytes"`      // used without reading
	DriveBytesPerSecond Figure `json:"drive_bytes_per_second"`
}

// Experts says how often experts were needed by a step, and found in memory.
type Experts struct {
	Needed int64  `json:"needed"`
	Hits   int64  `json:"hits"`
	Slots  int    `json:"slots"`  // experts that find room in memory at once
	All    int    `json:"all"`    // that the model has
	Policy string `json:"policy"` // that chose which stay
	// Prediction is what became of reads before a layer asked; nil if there were none.
	Prediction *Prediction `json:"prediction,omitempty"`
}

// Prediction counts experts that were read because a layer would probably need them.
type Prediction struct {
	Read      int64 `json:"read"` // or begun to be
	Used      int64 `json:"used"` // by the layer that they were read for
	Dropped   int64 `json:"dropped"`
	ReadBytes int64 `json:"read_bytes"` // before anybody asked
	Off       bool  `json:"off"`        // it was switched off for a while, because few were used
}

// Form says what an answer was held to, and what that took beside the model.
type Form struct {
	Kind           string  `json:"kind"` // json_schema, regex, gbnf, lark or choice
	CompileSeconds float64 `json:"compile_seconds"`
	Masks          int64   `json:"masks"` // of the tokens that might come next
	MaskSeconds    float64 `json:"mask_seconds"`
	ForcedTokens   int64   `json:"forced_tokens"` // those that were the only ones
}

// Roofline says how near the run came to what the machine allows.
type Roofline struct {
	Limit          string `json:"limit"`    // drive, memory or compute: what bounds the least possible time
	Fraction       Figure `json:"fraction"` // least possible time ÷ time taken; beyond 1 the measurement was too low
	DriveFraction  Figure `json:"drive_fraction"`
	PolicyFraction Figure `json:"policy_fraction"` // least bytes ÷ bytes read
}

// A Figure was measured, or is 0, which JSON has as null.
type Figure float64

// MarshalJSON writes the number, or null.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !(f > 0) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}
