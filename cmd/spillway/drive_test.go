package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/vfs"
)

// A profile that is kept is found again, unless it is old, of another drive, or damaged.
func TestDriveCache(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: the cache folder is set by XDG_CACHE_HOME on Linux alone")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s, _ := testSession(t, nil)
	if cachedProfile(7) != nil {
		t.Error("there is a profile before one was kept")
	}
	d := newDriveProfile(7, true, vfs.Profile{Cells: []vfs.Cell{{Size: 4096, Depth: 1, BytesPerSecond: 1e6}, {Size: 1 << 20, Depth: 4, BytesPerSecond: 2e9}}, Best: vfs.Cell{Size: 1 << 20, Depth: 4, BytesPerSecond: 2e9}})
	d.keep(s, 7)
	got := cachedProfile(7)
	if got == nil || len(got.cells()) != 2 || got.cells()[1].BytesPerSecond != 2e9 || got.Best != d.Best || cachedProfile(8) != nil {
		t.Fatalf("%+v", got)
	}
	if text := got.table("x"); !strings.Contains(text, "1 in flight") || !strings.Contains(text, "best: 2.0 GB/s, by requests of 1 MiB, 4 in flight") {
		t.Error(text)
	}
	d.Measured = time.Now().Add(-profileAge - time.Hour)
	d.keep(s, 7)
	if cachedProfile(7) != nil {
		t.Error("an old profile is believed")
	}
	path, err := driveCache(7)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", `{"device":"7","measured":"2999-01-01T00:00:00Z","cells":[{"request_bytes":1,"depth":1,"bytes_per_second":1}]}`,
		`{"device":"8"}`, `{"device":"7","measured":"` + time.Now().Format(time.RFC3339) + `","cells":[{"request_bytes":0,"depth":1,"bytes_per_second":1}]}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := cachedProfile(7); got != nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(path, "no folder"))
	d.keep(s, 7) // is no error
}
