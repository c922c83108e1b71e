package drive

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestBest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 24<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Best(path, 5*time.Millisecond)
	if errors.Is(err, unix.EINVAL) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil || p.BytesPerSecond <= 0 || p.Depth == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if err := os.Truncate(path, 1000); err != nil {
		t.Fatal(err)
	}
	if p, err := Best(path, time.Millisecond); err == nil {
		t.Errorf("a file smaller than a request gave %v", p)
	}
}
