package machine

import (
	"math"
	"testing"
)

func TestParseSize(t *testing.T) {
	good := map[string]int64{
		"1": 1, "1048576": MiB, "512MiB": 512 * MiB, "4GiB": 4 * GiB, "4G": 4 * GiB, "4g": 4 * GiB,
		"1.5 GiB": 3 * GiB / 2, "2GB": 2e9, "64k": 64 * KiB, "1TiB": TiB, "7B": 7, "1e3": 1000,
	}
	for s, want := range good {
		if got, err := ParseSize(s); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", " ", "MiB", "-1", "0", "0.1", "4 parsecs", "1e40GiB", "nan", "inf", "0x10", "1_000", "9223372036854775808", "4GiB2", "½GiB"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("%q gave %d", s, got)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 512 * MiB: "512 MiB", 4 * GiB: "4 GiB",
		98*MiB + 700*KiB: "98.7 MiB", 5000 * TiB: "5000 TiB", -MiB: "-1 MiB", math.MinInt64: "-8388608 TiB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
