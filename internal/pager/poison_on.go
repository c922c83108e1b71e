//go:build invariants

package pager

// poison makes a tile that is used after its time visible.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xFF
	}
}
