package testutil

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// WatchTree looks at every folder of the repository, so that the go command does not take a test
// that runs other programs on it from its cache after a file has changed.
func WatchTree(t testing.TB) {
	t.Helper()
	err := filepath.WalkDir(Root(t), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
