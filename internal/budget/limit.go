package budget

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spillway/spillway/internal/machine"
)

// ParseLimit reads the value of --memory: a size (512MiB, 4GiB, 4G, bytes), a percentage of the
// smallest of physical memory and cgroup limits, or auto.
func ParseLimit(s string, m machine.Memory) (int64, error) {
	text := strings.TrimSpace(s)
	if strings.EqualFold(text, "auto") {
		return autoLimit(m)
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		return percentLimit(s, strings.TrimSpace(number), m.Smallest())
	}
	n, err := machine.ParseSize(text)
	if err != nil {
		return 0, fmt.Errorf("memory: %w (or a percentage such as 50%%, or auto)", err)
	}
	return n, nil
}

func autoLimit(m machine.Memory) (int64, error) {
	n := m.Auto()
	if n <= 0 {
		return 0, fmt.Errorf("memory: auto leaves nothing, as only %s are free; give a size such as 512MiB",
			machine.FormatSize(max(0, m.Free())))
	}
	return n, nil
}

func percentLimit(s, number string, of int64) (int64, error) {
	p, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(p) || p <= 0 || p > 100 {
		return 0, fmt.Errorf("memory: %q is not a percentage between 0 and 100", s)
	}
	n := int64(float64(of) / 100 * p)
	if n < 1 {
		return 0, fmt.Errorf("memory: %s of %s is nothing", s, machine.FormatSize(of))
	}
	return n, nil
}
