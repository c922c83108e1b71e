//go:build amd64 || arm64

package kernel

// What the Go sides of all instruction sets share.

// strip is the most values that one call works on: assembly cannot be preempted, so it stays below
// 100 µs.
const strip = 16384

// strips calls f for pieces [lo, hi) of the whole multiples of step below n, and returns where the
// rest begins.
func strips(n, step int, f func(lo, hi int)) int {
	whole := n - n%step
	for lo := 0; lo < whole; lo += strip {
		f(lo, min(lo+strip, whole))
	}
	return whole
}

// uniform reports whether four lines see the same positions.
func uniform(lo, hi []int32) bool {
	return lo[0] == lo[1] && lo[1] == lo[2] && lo[2] == lo[3] && hi[0] == hi[1] && hi[1] == hi[2] && hi[2] == hi[3]
}
