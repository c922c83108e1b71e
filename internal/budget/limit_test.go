package budget

import (
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/machine"
)

func TestParseLimit(t *testing.T) {
	m := machine.Memory{
		Total: 64 * machine.GiB, Available: 32 * machine.GiB,
		Groups: []machine.Group{{Limit: 8 * machine.GiB, Usage: 2 * machine.GiB, Reclaimable: machine.GiB}},
	}
	good := map[string]int64{
		"512MiB": 512 * machine.MiB, "4GiB": 4 * machine.GiB, "4G": 4 * machine.GiB, "123456": 123456,
		"50%": 4 * machine.GiB, " 100 % ": 8 * machine.GiB, "12.5%": machine.GiB,
		"auto": 7*machine.GiB - 7*machine.GiB/20, "AUTO": 7*machine.GiB - 7*machine.GiB/20,
	}
	for s, want := range good {
		if got, err := ParseLimit(s, m); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", s, got, err, want)
		}
	}
	for s, part := range map[string]string{
		"": "not a number", "lots": "unknown unit", "0%": "between 0 and 100", "101%": "between 0 and 100",
		"nan%": "between 0 and 100", "%": "between 0 and 100", "-4GiB": "less than one byte", "0.0000000001%": "is nothing",
	} {
		if got, err := ParseLimit(s, m); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %d, %v", s, got, err)
		}
	}
	m.Groups[0].Usage = 8 * machine.GiB
	m.Groups[0].Reclaimable = 100 * machine.MiB
	if got, err := ParseLimit("auto", m); err == nil || !strings.Contains(err.Error(), "100 MiB") {
		t.Errorf("auto in a full group: %d, %v", got, err)
	}
}
