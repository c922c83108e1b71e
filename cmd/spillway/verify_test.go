package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/vfs"
)

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// One pass gives the digests of the files and of every tensor: split sets, gaps, empty tensors.
func TestDigests(t *testing.T) {
	for _, name := range []string{"split-00002-of-00003", "gaps", "data-order", "zero-size-tensors", "trailing"} {
		cat, err := checkpoint.Open(vfs.OS(), testutil.Shared(t, "oracle-gguf/odd/"+name+".gguf"))
		if err != nil {
			t.Fatal(err)
		}
		s, _ := testSession(t, nil)
		s.flags.Memory = "auto"
		v, err := digests(context.Background(), s, cat)
		if err != nil {
			t.Fatal(err)
		}
		contents := make([][]byte, len(cat.Files))
		for i, f := range cat.Files {
			if contents[i], err = os.ReadFile(f.Path); err != nil {
				t.Fatal(err)
			}
			if v.Files[i].SHA256 != sum(contents[i]) || v.Files[i].Size != int64(len(contents[i])) {
				t.Errorf("%s: %+v", name, v.Files[i])
			}
		}
		if len(v.Tensors) != len(cat.Tensors) {
			t.Errorf("%s: %d digests of %d tensors", name, len(v.Tensors), len(cat.Tensors))
		}
		for _, d := range v.Tensors {
			x, ok := cat.Tensor(d.Name)
			if !ok || d.SHA256 != sum(contents[x.File][x.Offset:x.Offset+x.Bytes]) {
				t.Errorf("%s: wrong digest of %s", name, d.Name)
			}
		}
		if err := cat.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A file whose name is its digest is compared with it.
func TestNamedByDigest(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "m.gguf")
	s, out := testSession(t, nil)
	if s.main([]string{"synth", "smollm2-135m", "--type", "q4_0", "--layers", "1", "--out", model}) != exitFine {
		t.Fatal(out)
	}
	data, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	good, bad := filepath.Join(dir, sum(data)), filepath.Join(dir, "sha256-"+strings.Repeat("0", 64))
	for path, want := range map[string]int{good: exitFine, bad: exitFile} {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		s, out := testSession(t, nil)
		if code := s.main([]string{"verify", path}); code != want {
			t.Errorf("exit code %d, want %d: %s", code, want, out)
		}
	}
}

// The memory that a refusal of the table names does.
func TestVerifyIdentityLeast(t *testing.T) {
	s, out := testSession(t, nil)
	if code := s.main([]string{"verify", "storyteller", "--identity", "--memory", "8MiB"}); code != exitMemory {
		t.Fatalf("exit code %d: %s", code, out)
	}
	m := regexp.MustCompile(`at least (\d+) MiB`).FindStringSubmatch(out.String())
	if m == nil {
		t.Fatal(out)
	}
	s, out = testSession(t, nil)
	if code := s.main([]string{"verify", "storyteller", "--identity", "--memory", m[1] + "MiB"}); code != exitFine {
		t.Errorf("with %s MiB: exit code %d: %s", m[1], code, out)
	}
}

// The table covers streamed and resident runs, several chunks and batches, and every instruction set;
// all digests are the same.
func TestVerifyIdentity(t *testing.T) {
	s, out := testSession(t, nil)
	if code := s.main([]string{"verify", "storyteller", "--identity", "--json", "--memory", "256MiB"}); code != exitFine {
		t.Fatal(out)
	}
	var table identityTable
	if err := json.Unmarshal(out.Bytes(), &table); err != nil {
		t.Fatal(err)
	}
	streamed := 0
	for _, r := range table.Rows {
		if r.Streamed > 0 {
			streamed++
		}
		if r.SHA256 != table.Rows[0].SHA256 {
			t.Errorf("%+v differs from %+v", r, table.Rows[0])
		}
	}
	if !table.Same || len(table.Rows) < 8 || streamed == 0 {
		t.Errorf("same: %v, %d rows, %d of them streamed", table.Same, len(table.Rows), streamed)
	}
}
