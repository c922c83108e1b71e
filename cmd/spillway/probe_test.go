package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/vfs"
)

// The file holds what the model computes: logits of all positions, taps of the prompt's rows only.
func TestProbeFile(t *testing.T) {
	out := filepath.Join(t.TempDir(), "p.safetensors")
	ids := identityIDs(0, 40, 2048)
	text := make([]string, len(ids))
	for i, id := range ids {
		text[i] = strconv.Itoa(int(id))
	}
	s, printed := testSession(t, nil)
	if code := s.main([]string{"probe", "storyteller", "--ids", strings.Join(text, ","), "--taps", "all", "--greedy", "3", "--out", out}); code != 0 {
		t.Fatal(printed)
	}
	f, err := vfs.OS().Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := safetensors.ReadAll(f, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*collected{"logits": {}}
	added := probeDirectly(t, ids, want)
	greedy, err := got["greedy"].Ints()
	if err != nil || !slices.Equal(greedy, widen(added)) {
		t.Errorf("greedy %v, %v, want %v", greedy, err, added)
	}
	if len(got) != len(want)+1 {
		t.Errorf("%d tensors, want %d", len(got), len(want)+1)
	}
	for name, w := range want {
		a := got[name]
		if !slices.Equal(a.Shape, []int{len(ids), w.width}) {
			t.Errorf("%s has the shape %v, want %d × %d", name, a.Shape, len(ids), w.width)
			continue
		}
		values, err := a.Float32s()
		if err != nil || !slices.Equal(values, w.values[:len(values)]) {
			t.Errorf("%s differs (%v)", name, err)
		}
	}
}

// probeDirectly runs the prompt through the library and keeps everything.
func probeDirectly(t *testing.T, ids []int32, want map[string]*collected) []int32 {
	t.Helper()
	rt, err := spillway.New(spillway.Options{Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	m, err := rt.OpenEmbedded(t.Context(), spillway.ModelOptions{Context: 64, HeadRows: 4})
	if err != nil {
		t.Fatal(err)
	}
	added, err := m.Probe(t.Context(), spillway.Probe{IDs: ids, Greedy: 3,
		Rows: func(_ int, row []float32) error { want["logits"].add(1, len(row), row); return nil },
		Tap: func(name string, rows, width int, values []float32) {
			if want[name] == nil {
				want[name] = &collected{}
			}
			want[name].add(rows, width, values)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	return added
}

func TestParseIDs(t *testing.T) {
	got, err := parseIDs("1, 2\n3,\n4", 5)
	if err != nil || !slices.Equal(got, []int32{1, 2, 3, 4}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "5", "-1", "1;2", "99999999999", "1,,2", ",1", "1,", "1, ,2"} {
		if ids, err := parseIDs(bad, 5); err == nil {
			t.Errorf("%q gives %v", bad, ids)
		}
	}
}
