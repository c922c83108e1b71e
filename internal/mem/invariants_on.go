//go:build invariants

package mem

// invariants makes misuse of memory visible: contents start as NaN patterns instead of zeros or old
// values, freed memory faults when touched, and a double free panics.
const invariants = true

func poison(b []byte) {
	for i := range b {
		b[i] = 0xFF
	}
}
