package report

import (
	"fmt"
	"strings"
	"time"
)

// Bytes writes n as a person reads it: "61.2 MiB", "4 GiB", "812 B".
func Bytes(n int64) string {
	if n < 0 {
		return "-" + Bytes(-n)
	}
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n), 0
	for v >= 1023.95 && u < len(units)-1 { // what would print as 1024.0
		v /= 1024
		u++
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + units[u]
}

// CapBytes writes n as a person gives it to --memory, and at least n: rounded up to a whole MiB.
func CapBytes(n int64) string {
	const mib = 1 << 20
	return fmt.Sprintf("%d MiB", (n+mib-1)/mib)
}

// Count writes a number of things: "134.5 M", "7.24 B", "812".
func Count(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f B", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.1f k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// Rate writes bytes per second in decimal units, as drives and memory are sold: "1.4 GB/s". 0 was not measured.
func Rate(bytesPerSecond float64) string {
	switch {
	case !(bytesPerSecond > 0):
		return notMeasured
	case bytesPerSecond >= 1e9:
		return fmt.Sprintf("%.1f GB/s", bytesPerSecond/1e9)
	case bytesPerSecond >= 1e6:
		return fmt.Sprintf("%.0f MB/s", bytesPerSecond/1e6)
	}
	return fmt.Sprintf("%.0f kB/s", bytesPerSecond/1e3)
}

const notMeasured = "not measured"

// Operations writes operations per second: "412 Gop/s". 0 was not measured.
func Operations(perSecond float64) string {
	if !(perSecond > 0) {
		return notMeasured
	}
	return fmt.Sprintf("%.0f Gop/s", perSecond/1e9)
}

// Seconds writes a duration: "85 ms", "3.2 s", "2m05s".
func Seconds(s float64) string {
	switch {
	case s < 0.0995:
		return fmt.Sprintf("%.0f ms", s*1e3)
	case s < 59.95:
		return fmt.Sprintf("%.1f s", s)
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// Speedy writes tokens per second: "0.75", "40.1", "459".
func Speedy(tokens int, seconds float64) string {
	if seconds <= 0 {
		return "–"
	}
	v := float64(tokens) / seconds
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Bar draws a share of width cells with eighths of a cell.
func Bar(share float64, width int) string {
	share = min(1, max(0, share))
	eighths := int(share*float64(width)*8 + 0.5)
	bar := strings.Repeat("█", eighths/8)
	if eighths%8 > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[eighths%8-1])
	}
	return bar + strings.Repeat(" ", max(0, width-(eighths+7)/8))
}
