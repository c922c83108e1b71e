package machine

import (
	"slices"
	"strings"
	"testing"
)

var written = []byte("stays as it was written")

func TestTrimBinary(t *testing.T) {
	copy(written, "STAYS")
	before, ok := ReadProcess()
	if err := TrimBinary(); err != nil {
		t.Fatal(err)
	}
	after, _ := ReadProcess()
	if ok && after.File >= before.File*3/4 {
		t.Errorf("%d bytes of files were resident before, %d after", before.File, after.File)
	}
	if string(written) != "STAYS as it was written" {
		t.Errorf("data that was written is now %q", written)
	}
}

func TestParseMappings(t *testing.T) {
	const smaps = `00400000-00401000 r-xp 00000000 fe:00 77 /opt/a program
Size:                  4 kB
Anonymous:             0 kB
Swap:                  0 kB
00500000-00503000 r--p 00001000 fe:00 77 /opt/a program
Anonymous:             8 kB
Swap:                  4 kB
VmFlags: rd mr mw me
00600000-00601000 rw-p 00004000 fe:00 77 /opt/a program
Anonymous:             4 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 78 /lib/another
Anonymous:             4 kB
7ffc00000000-7ffc00001000 rw-p 00000000 00:00 0 [stack]
`
	got, err := parseMappings(strings.NewReader(smaps), "/opt/a program")
	want := []mapping{{0x400000, 0x401000, false, 0}, {0x500000, 0x503000, false, 12 << 10}, {0x600000, 0x601000, true, 4 << 10}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
