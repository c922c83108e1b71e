package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTests(t *testing.T) {
	for name, want := range map[string]test{
		"pp512":        {name: "pp512", prompt: 512, batch: 1},
		"tg64x8":       {name: "tg64x8", decoded: 64, batch: 8},
		"pp512@d8192":  {name: "pp512@d8192", prompt: 512, batch: 1, depth: 8192},
		"tg64":         {name: "tg64", decoded: 64, batch: 1},
		"tg16@d8192":   {name: "tg16@d8192", decoded: 16, batch: 1, depth: 8192},
		"pp512x8":      {},
		"tg64x8@d8192": {},
		"64":           {},
	} {
		got, err := parseTest(name)
		if (err != nil) != (want.name == "") || !cmp.Equal(got, want, cmp.AllowUnexported(test{})) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestReadsOutputs(t *testing.T) {
	ours, err := readOurs([]byte(`{"rows": [{"test": "pp512", "batch": 1, "tokens_per_second": {"median": 120.5, "min": 1, "max": 200}}]}`))
	if err != nil || ours != 120.5 {
		t.Errorf("ours %v, %v", ours, err)
	}
	single := test{batch: 1}
	peer, err := single.readPeer([]byte(`[{"n_prompt": 512, "n_gen": 0, "avg_ts": 241}]`))
	if err != nil || peer != 241 {
		t.Errorf("peer %v, %v", peer, err)
	}
	many := test{batch: 8}
	peer, err = many.readPeer([]byte("main: n_kv_max = 4096\n{\"n_kv_max\": 4096, \"pl\": 8, \"speed_pp\": 7.5, \"speed_tg\": 99.5, \"speed\": 80}\n"))
	if err != nil || peer != 99.5 {
		t.Errorf("batched peer %v, %v", peer, err)
	}
	for _, tt := range []test{single, many} {
		if _, err := tt.readPeer([]byte("error: no model")); err == nil {
			t.Error("an error message was taken for a speed")
		}
	}
	if _, err := readOurs([]byte(`{"rows": []}`)); err == nil {
		t.Error("no rows were taken for a speed")
	}
}

func TestSummary(t *testing.T) {
	text := summary([]pair{{ours: 30, peer: 20, others: 0.01}, {ours: 10, peer: 20}, {ours: 20, peer: 20}}, 2)
	for _, part := range []string{" 20.00 ", "1.00 (0.50 to 1.50)", "3 kept, 2 thrown away; up to 1.0 %"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
	if m := median([]float64{1, 2, 3, 4}); m != 2.5 {
		t.Errorf("median %v", m)
	}
}
