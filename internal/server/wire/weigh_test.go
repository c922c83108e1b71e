package wire

import "testing"

func TestWeigh(t *testing.T) {
	for text, want := range map[string]int64{
		``: 0, `1`: 0, `"a, {b} [c] \" , "`: textWeight, `[1,2,3]`: partWeight + 2*valueWeight,
		`{"a":["",""]}`: 2*partWeight + 3*textWeight + valueWeight, `["`: partWeight + textWeight, `["\`: partWeight + textWeight,
	} {
		if got := Weigh([]byte(text)); got != want {
			t.Errorf("%s weighs %d, want %d", text, got, want)
		}
	}
}
