package regular

import (
	"strings"
	"testing"
)

func TestPatternOfManyStates(t *testing.T) {
	p, err := NewBuilder(Limits{}).Pattern(`^[01]*1[01]{40}$`, true)
	if err != nil {
		t.Fatal(err)
	}
	yes, no := strings.Repeat("0110", 5000)+"1"+strings.Repeat("0", 40), strings.Repeat("0110", 5000)+"0"+strings.Repeat("1", 40)
	if !p.Match(yes) || p.Match(no) || p.Match("2") {
		t.Error("the wrong texts match")
	}
}

func TestCounted(t *testing.T) {
	for _, c := range []struct {
		pattern     string
		least, most int
		ok          bool
	}{
		{`^[a-z]{2,9}$`, 2, 9, true}, {`^[a-z][a-z]*$`, 1, -1, true}, {`^([\p{L}\d]+)$`, 1, -1, true}, {`^(?:.)$`, 1, 1, true},
		{`^[ab]{1,2}[b-ba]{3}$`, 4, 5, true}, {`[a-z]{2}`, 0, 0, false}, {`^[a-z]{2}`, 0, 0, false}, {`^a|b$`, 0, 0, false},
		{`^$`, 0, 0, false}, {`^a{2}b$`, 0, 0, false}, {`^(ab)*$`, 0, 0, false}, {`^[]$`, 0, 0, false}, {`^^a$`, 0, 0, false},
	} {
		b := NewBuilder(Limits{})
		char, least, most, ok, err := b.Counted(c.pattern)
		if err != nil || ok != c.ok || ok && (least != c.least || most != c.most) {
			t.Errorf("%s: %d to %d, %v, %v", c.pattern, least, most, ok, err)
		}
		if ok && !must(t)(b.Repeat(char, least, most)).Equal(must(t)(b.Regexp(c.pattern, true))) {
			t.Errorf("%s: not the same language", c.pattern)
		}
	}
}
