package main

import (
	"io"
	"strings"
	"testing"
)

// TestPastesAreBounded: all pastes of an input together keep no more than an input may have.
func TestPastesAreBounded(t *testing.T) {
	const most = 1000
	paste := pasteBegin + strings.Repeat("a line\n", 100) + pasteEnd
	p := &pasteReader{r: strings.NewReader("x " + paste + paste + paste), most: most}
	line, err := io.ReadAll(p)
	want := "x [pasted 100 lines #1][pasted 300 bytes, 400 too many dropped #2][pasted 0 bytes, 700 too many dropped #3]"
	if err != nil || string(line) != want {
		t.Errorf("%q, %v; want %q", line, err, want)
	}
	if text := p.expand(string(line)); len(text) != len("x ")+most {
		t.Errorf("%d bytes are kept", len(text)-len("x "))
	}
	p.forget()
	if p.size != 0 || p.expand(string(line)) != string(line) {
		t.Error("pastes outlive their input")
	}
}

// TestPasteMarksAreSplit: wherever a paste lies in what is read at once, its marks are found.
func TestPasteMarksAreSplit(t *testing.T) {
	for n := range 2 * len(pasteReader{}.raw) {
		typed, pasted := strings.Repeat("x", n), strings.Repeat("y", 300)+"\n"+strings.Repeat("z", 300)
		p := &pasteReader{r: strings.NewReader(typed + pasteBegin + pasted + pasteEnd + "!"), most: 1 << 20}
		line, err := io.ReadAll(p)
		if want := typed + "[pasted 2 lines #1]!"; err != nil || string(line) != want {
			t.Fatalf("after %d bytes: %q, %v; want %q", n, line, err, want)
		}
		if text := p.expand(string(line)); text != typed+pasted+"!" {
			t.Fatalf("after %d bytes: %q", n, text)
		}
	}
}
