// Package testutil finds test material that is too large for the repository.
package testutil

import (
	"os"
	"path/filepath"
	"testing"
)

// Root returns the repository's root: the nearest parent with a go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = parent
	}
}

// Shared returns the path of name under the shared material, or skips the test. The material lies
// beside the repository, or where SPILLWAY_SHARED says.
func Shared(t testing.TB, name string) string {
	t.Helper()
	base := os.Getenv("SPILLWAY_SHARED")
	if base == "" {
		base = filepath.Join(Root(t), "..", "shared")
	}
	path := filepath.Join(base, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: no shared material %s", name)
	}
	return path
}

// SmolLM2 returns the path of the SmolLM2-135M-Instruct GGUF file, or skips the test. It lies under
// SPILLWAY_MODELS, or under spillway-models in the user's cache folder.
func SmolLM2(t testing.TB) string {
	t.Helper()
	base := os.Getenv("SPILLWAY_MODELS")
	if base == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip("skipped: no cache folder to look for SmolLM2 in")
		}
		base = filepath.Join(cache, "spillway-models")
	}
	path := filepath.Join(base, "smollm2-135m-instruct-q4_1", "SmolLM2-135M-Instruct.Q4_1.gguf")
	if _, err := os.Stat(path); err != nil {
		t.Skip("skipped: SmolLM2 is not there (fetch it, then set SPILLWAY_MODELS)")
	}
	return path
}
