package kernel

import (
	"runtime"
	"testing"
)

func TestKeptSurvivesCollections(t *testing.T) {
	made := 0
	k := kept[int]{make: func() *int { made++; return new(int) }}
	for range 3 {
		k.put(k.get())
		runtime.GC()
		runtime.GC()
	}
	if made != 1 {
		t.Errorf("made %d values for one use at a time", made)
	}
}
