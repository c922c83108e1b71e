package machine

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Binary units of bytes.
const (
	KiB int64 = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

// units by their lower-case suffix. A bare letter is binary, as in Docker and systemd.
var units = map[string]int64{
	"": 1, "b": 1,
	"k": KiB, "m": MiB, "g": GiB, "t": TiB,
	"kib": KiB, "mib": MiB, "gib": GiB, "tib": TiB,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}

// ParseSize reads a positive number of bytes such as 1048576, 512MiB, 1.5GiB, 4G (binary) or 4GB
// (decimal). Case does not matter.
func ParseSize(s string) (int64, error) {
	number := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit, ok := units[strings.ToLower(strings.TrimSpace(s[len(number):]))]
	if !ok {
		return 0, fmt.Errorf("size %q has an unknown unit; KiB, MiB, GiB and TiB work", s)
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(v) || strings.ContainsAny(number, "xXpP_") {
		return 0, fmt.Errorf("size %q is not a number with a unit; 512MiB or 4GiB would do", s)
	}
	bytes := v * float64(unit)
	switch {
	case bytes < 1:
		return 0, fmt.Errorf("size %q is less than one byte", s)
	case bytes >= math.MaxInt64:
		return 0, fmt.Errorf("size %q is too large to count", s)
	}
	return int64(bytes), nil
}

// FormatSize writes bytes for people: three or four digits and a binary unit.
func FormatSize(n int64) string {
	if n < 0 {
		return "-" + FormatSize(-max(n, -math.MaxInt64))
	}
	if n < KiB {
		return fmt.Sprintf("%d B", n)
	}
	unit, v := 0, float64(n)
	for v >= 1024 && unit < 4 {
		v /= 1024
		unit++
	}
	digits := 0
	if v < 100 && v != math.Trunc(v) {
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit]
}
