package mem

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// mappedFiles is the bytes of files that are resident in our address space.
func mappedFiles(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "RssFile:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

var written = []byte("stays as it was written")

func TestTrimBinary(t *testing.T) {
	copy(written, "STAYS")
	before := mappedFiles(t)
	if err := TrimBinary(); err != nil {
		t.Fatal(err)
	}
	if after := mappedFiles(t); after >= before*3/4 {
		t.Errorf("%d bytes of files were resident before, %d after", before, after)
	}
	if string(written) != "STAYS as it was written" {
		t.Errorf("data that was written is now %q", written)
	}
}
