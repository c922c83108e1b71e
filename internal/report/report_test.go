package report

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The keys are a promise to scripts.
func TestJSONKeys(t *testing.T) {
	const want = `{"text":"hi","prompt_ids":[1],"ids":[2],"finish_reason":"stop",` +
		`"model":{"name":"m","family":"llama","parameters":1,"weight_bytes":1,"source":"f"},` +
		`"memory":{"budget":1,"ledger_peak":1,"rss_peak":1,"cgroup_peak":null,"least":1},` +
		`"speed":{"load_seconds":0.1,"prefill_tokens":1,"prefill_seconds":0.1,"decode_tokens":1,"decode_seconds":0.1},` +
		`"io":{"required_bytes":1,"read_bytes":1,"hit_bytes":1,"drive_bytes_per_second":1.5},` +
		`"cache":{"type":"q8_0","lossy":true},` +
		`"roofline":{"limit":"drive","fraction":0.9,"drive_fraction":0.95,"policy_fraction":0.95},` +
		`"notes":["said once"]}`
	r := Report{
		Text: "hi", PromptIDs: []int{1}, IDs: []int{2}, FinishReason: "stop",
		Model:    Model{Name: "m", Family: "llama", Parameters: 1, WeightBytes: 1, Source: "f"},
		Memory:   Memory{Budget: 1, LedgerPeak: 1, RSSPeak: 1, Least: 1},
		Speed:    Speed{LoadSeconds: 0.1, PrefillTokens: 1, PrefillSeconds: 0.1, DecodeTokens: 1, DecodeSeconds: 0.1},
		IO:       IO{RequiredBytes: 1, ReadBytes: 1, HitBytes: 1, DriveBytesPerSecond: 1.5},
		Cache:    Cache{Type: "q8_0", Lossy: true},
		Roofline: Roofline{Limit: "drive", Fraction: 0.9, DriveFraction: 0.95, PolicyFraction: 0.95},
		Notes:    []string{"said once"},
	}
	got, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
}

func TestProse(t *testing.T) {
	peak := int64(61_500_000)
	r := Report{
		IDs: make([]int, 128), FinishReason: "length",
		Model:    Model{WeightBytes: 98_362_432},
		Memory:   Memory{Budget: 64 << 20, RSSPeak: 55 << 20, CgroupPeak: &peak, Least: 42 << 20},
		Speed:    Speed{LoadSeconds: 0.05, PrefillTokens: 34, PrefillSeconds: 0.4, DecodeTokens: 127, DecodeSeconds: 3.2},
		IO:       IO{ReadBytes: 5 << 30, HitBytes: 3 << 30, DriveBytesPerSecond: 1.42e9},
		Roofline: Roofline{Limit: "drive", Fraction: 0.91, DriveFraction: 0.95, PolicyFraction: 0.96},
		Notes:    []string{"direct I/O refused; reading through the page cache"},
	}
	const want = `note: direct I/O refused; reading through the page cache
128 tokens, 39.7 tokens/s (prompt: 34 tokens in 0.4 s, 85.0 tokens/s; loading: 50 ms), stopped at --max-tokens
memory: 58.7 MiB peak by the kernel's count, cap 64 MiB, weights 93.8 MiB, least that works 42 MiB
weights read: 5 GiB, used from memory: 3 GiB (the drive gives 1.4 GB/s)
roofline: 91 % of what the drive allows (95 % with the bytes that were read; 96 % of those had to be)
`
	if d := cmp.Diff(want, r.Prose()); d != "" {
		t.Error(d)
	}
	peak = 5 << 30 // of a group with others in it
	if got := r.Prose(); !strings.Contains(got, "memory: 55 MiB peak, cap 64 MiB") {
		t.Error(got)
	}
	r.Roofline.Fraction = 1.2
	if got := r.Prose(); !strings.Contains(got, "roofline: 120 % of what the drive allows") || !strings.Contains(got, "was busy while it was measured") {
		t.Error(got)
	}
	r.Roofline.Fraction = 0
	if got := r.Prose(); !strings.Contains(got, "\nroofline: not measured\n") {
		t.Error(got)
	}
	if got, err := json.Marshal(r.Roofline); err != nil || !strings.Contains(string(got), `"fraction":null`) {
		t.Errorf("%s, %v", got, err)
	}
	r.FinishReason = "error"
	if got := r.Prose(); !strings.Contains(got, "loading: 50 ms), ended by an error\n") {
		t.Error(got)
	}
	const short = `1 token (prompt: 1 token in 1.5 s, 0.67 tokens/s; loading: 2m5s)
memory: 5 B peak
`
	r = Report{IDs: []int{1}, Memory: Memory{RSSPeak: 5}, Speed: Speed{LoadSeconds: 125, PrefillTokens: 1, PrefillSeconds: 1.5}}
	if d := cmp.Diff(short, r.Prose()); d != "" {
		t.Error(d)
	}
}

func TestUnits(t *testing.T) {
	for got, want := range map[string]string{
		Bytes(0): "0 B", Bytes(1023): "1023 B", Bytes(1024): "1 KiB", Bytes(1<<20 - 1): "1 MiB",
		Bytes(-3 << 29): "-1.5 GiB", Bytes(math.MaxInt64): "8388608 TiB",
		CapBytes(1): "1 MiB", CapBytes(42 << 20): "42 MiB", CapBytes(42<<20 + 1): "43 MiB",
		Count(812): "812", Count(32000): "32.0 k", Count(134_515_008): "134.5 M", Count(7_241_732_096): "7.24 B",
		Rate(1.4e9): "1.4 GB/s", Rate(3e8): "300 MB/s", Rate(5e3): "5 kB/s", Rate(0): "not measured", Operations(0): "not measured", Operations(4e11): "400 Gop/s",
		Seconds(0.02): "20 ms", Seconds(3.21): "3.2 s", Seconds(59.96): "1m0s",
		Speedy(3, 4): "0.75", Speedy(401, 10): "40.1", Speedy(459, 1): "459", Speedy(1, 0): "–",
		Bar(0.5, 4): "██  ", Bar(0.53125, 4): "██▏ ", Bar(2, 3): "███", Bar(-1, 2): "  ", Bar(0.99, 2): "██",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
