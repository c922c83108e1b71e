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
	if r := p.Run(); !r.Match(yes) || r.Match(no) || r.Match("2") {
		t.Error("the wrong texts match")
	}
}
