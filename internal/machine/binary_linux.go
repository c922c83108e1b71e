package machine

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// BinaryBytes is the size of the program's own file as it is mapped: the most page cache that
// running it can cause.
func BinaryBytes() int64 {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0
	}
	defer maps.Close()
	var n int64
	for s := bufio.NewScanner(maps); s.Scan(); {
		line := s.Text()
		if !strings.HasSuffix(line, exe) {
			continue
		}
		span, _, _ := strings.Cut(line, " ")
		from, to, _ := strings.Cut(span, "-")
		lo, err1 := strconv.ParseUint(from, 16, 64)
		hi, err2 := strconv.ParseUint(to, 16, 64)
		if err1 == nil && err2 == nil && hi > lo {
			n += int64(hi - lo)
		}
	}
	return n
}
