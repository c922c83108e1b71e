package jsonscan

import (
	"strings"
	"testing"
)

func TestFloat(t *testing.T) {
	for text, want := range map[string]float64{"-3.5": -3.5, " 1e3 ": 1000, "0": 0} {
		if got, err := New(strings.NewReader(text), 100).Float(); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "true", "null", "1e999", `"1"`, "NaN", "0x1"} {
		if got, err := New(strings.NewReader(text), 100).Float(); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
