package early

import (
	"os"
	"slices"
	"strings"
	"testing"
)

type part struct {
	start, end uintptr
	writable   bool
	code       bool
}

func TestParts(t *testing.T) {
	const (
		text = "00400000-008cc000 r-xp 00000000 fe:00 1234 /usr/bin/some program\n"
		data = "008cc000-0116a000 r--p 004cc000 fe:00 1234 /usr/bin/some program\n"
		vars = "0116a000-011ae000 rw-p 00d6a000 fe:00 1234 /usr/bin/some program\n"
		anon = "011ae000-031e6000 r--p 00000000 00:00 0 \n"
	)
	whole := []part{{0x400000, 0x8cc000, false, true}, {0x8cc000, 0x116a000, false, false}, {0x116a000, 0x11ae000, true, false}}
	for maps, want := range map[string][]part{
		text + data + vars + data: whole,
		text + data + anon + data: whole[:2],
		text + data[:20]:          whole[:1],
		vars + text:               whole[2:],
		"55d000400000-55d0008cc000 r-xp 00000000 fe:00 1234 /usr/bin/moved\n": nil,
		"":         nil,
		"zz":       nil,
		"00400000": nil,
	} {
		var got []part
		parts([]byte(maps), func(start, end uintptr, writable, code bool) { got = append(got, part{start, end, writable, code}) })
		if !slices.Equal(got, want) {
			t.Errorf("%q: %+v, want %+v", maps, got, want)
		}
	}
}

// The real lines begin with this very program.
func TestPartsReal(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	found, mapped := 0, 0
	parts(maps, func(start, end uintptr, writable, code bool) { found++ })
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, " "+exe+"\n") {
			mapped++
		}
	}
	if found == 0 || found > mapped {
		t.Errorf("%d parts of %d", found, mapped)
	}
}
