package main

import "testing"

func TestReadsBothOutputs(t *testing.T) {
	ours, err := readOurs([]byte(`{"rows": [{"test": "pp512", "batch": 1, "tokens_per_second": {"median": 120.5, "min": 1, "max": 200}}]}`))
	if err != nil || ours["pp512"] != 120.5 {
		t.Errorf("ours %v, %v", ours, err)
	}
	peer, err := readPeer([]byte(`[{"n_prompt": 512, "n_gen": 0, "avg_ts": 241}, {"n_prompt": 0, "n_gen": 64, "avg_ts": 65.5}]`))
	if err != nil || peer["pp512"] != 241 || peer["tg64"] != 65.5 {
		t.Errorf("peer %v, %v", peer, err)
	}
	if _, err := readPeer([]byte("error: no model")); err == nil {
		t.Error("an error message was taken for speeds")
	}
}

func TestMedian(t *testing.T) {
	if m := median([]float64{3, 1, 2}); m != 2 {
		t.Errorf("median %v", m)
	}
	if m := median([]float64{4, 1, 2, 3}); m != 2.5 {
		t.Errorf("median %v", m)
	}
}
