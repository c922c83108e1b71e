package main

import (
	"encoding/binary"
	"testing"

	"golang.org/x/arch/arm64/arm64asm"
)

// Every word is the instruction that stands beside it.
func TestWords(t *testing.T) {
	a := generate()
	seen := map[word]bool{}
	for _, w := range a.words {
		if seen[w] {
			continue
		}
		seen[w] = true
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], w.code)
		inst, err := arm64asm.Decode(b[:])
		if err != nil {
			t.Errorf("%08x %s: %v", w.code, w.text, err)
			continue
		}
		if got := arm64asm.GNUSyntax(inst); got != w.text {
			t.Errorf("%08x is %s, want %s", w.code, got, w.text)
		}
	}
	if len(seen) < 500 {
		t.Errorf("%d different words", len(seen))
	}
}
