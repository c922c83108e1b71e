// Package report holds what a run remembers. One Report value is filled by the rooms' counters;
// JSON and prose are views of it. Nothing here prints.
package report

// Report is one run. Its JSON form is that of `spillway run --json`. Bytes and seconds throughout.
type Report struct {
	Text         string   `json:"text"`
	PromptIDs    []int    `json:"prompt_ids"`
	IDs          []int    `json:"ids"`
	FinishReason string   `json:"finish_reason"` // stop, length, cancelled or error
	Model        Model    `json:"model"`
	Memory       Memory   `json:"memory"`
	Speed        Speed    `json:"speed"`
	IO           IO       `json:"io"`
	Roofline     Roofline `json:"roofline"`

	// Notes are one-time remarks for the reader of the prose, such as "direct I/O refused".
	Notes []string `json:"-"`
}

// Model says what ran.
type Model struct {
	Name        string `json:"name"`
	Family      string `json:"family"`
	Parameters  int64  `json:"parameters"`
	WeightBytes int64  `json:"weight_bytes"`
	Source      string `json:"source"` // path, or "embedded"
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
	RequiredBytes       int64   `json:"required_bytes"` // the least that any policy must read at this budget
	ReadBytes           int64   `json:"read_bytes"`     // read from the drive
	HitBytes            int64   `json:"hit_bytes"`      // used without reading
	DriveBytesPerSecond float64 `json:"drive_bytes_per_second"`
}

// Roofline says how near the run came to what the machine allows.
type Roofline struct {
	Limit          string  `json:"limit"`    // drive, memory or compute: what bounds the least possible time
	Fraction       float64 `json:"fraction"` // least possible time ÷ time taken
	DriveFraction  float64 `json:"drive_fraction"`
	PolicyFraction float64 `json:"policy_fraction"` // least bytes ÷ bytes read
}

// Work is the least work that a run could have been.
type Work struct {
	ReadBytes    int64 // the least bytes that any policy reads
	ActiveBytes  int64 // bytes of weights and cache that the cores must see
	Operations   int64
	TakenSeconds float64
}

// Limits is what the machine can do at best.
type Limits struct {
	DriveBytesPerSecond  float64
	MemoryBytesPerSecond float64
	OperationsPerSecond  float64
}

// NewRoofline compares the time that the least possible work needs with the time taken: the
// largest of the drive's, the memory's and the cores' part (limits that are 0 are unknown and left
// out). read is the bytes that were really read.
func NewRoofline(w Work, l Limits, read int64) Roofline {
	r := Roofline{Limit: "compute", DriveFraction: 1, PolicyFraction: 1}
	least := over(float64(w.Operations), l.OperationsPerSecond)
	if t := over(float64(w.ActiveBytes), l.MemoryBytesPerSecond); t > least {
		least, r.Limit = t, "memory"
	}
	if t := over(float64(w.ReadBytes), l.DriveBytesPerSecond); t > least {
		least, r.Limit = t, "drive"
	}
	r.Fraction = over(least, w.TakenSeconds)
	r.DriveFraction = r.Fraction
	if r.Limit == "drive" {
		r.DriveFraction = over(over(float64(read), l.DriveBytesPerSecond), w.TakenSeconds)
	}
	if read > 0 {
		r.PolicyFraction = min(1, float64(w.ReadBytes)/float64(read))
	}
	return r
}

// over is a ÷ b, and 0 where b is unknown.
func over(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
