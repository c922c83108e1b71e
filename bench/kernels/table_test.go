package main

import (
	"strings"
	"testing"
)

const round = `goos: linux
goarch: amd64
cpu: AMD EPYC
BenchmarkTable/read/threads=1-2         	       1	 200214498 ns/op	20000.00 MB/s
BenchmarkTable/read/threads=2-2         	       1	 215713644 ns/op	40000.00 MB/s
BenchmarkTable/peak/avx2-2              	       1	  74036174 ns/op	       100.0 float-Gop/s	       200.0 integer-Gop/s
BenchmarkTable/decode/avx2/threads=1/Q4_K-2         	      14	   4723221 ns/op	10000.00 MB/s	        10.66 Gop/s
BenchmarkTable/decode/avx2/threads=2/Q4_K-2         	       9	   6864771 ns/op	30000.00 MB/s	         7.332 Gop/s
BenchmarkTable/prefill/avx2/Q4_K-2                  	       4	  17558008 ns/op	 238.88 MB/s	       150.0 Gop/s
BenchmarkTable/decode/avx2/threads=1/F16-2         	      14	   4723221 ns/op	16000.00 MB/s	        10.66 Gop/s
BenchmarkTable/prefill/avx2/F16-2                  	       4	  17558008 ns/op	 238.88 MB/s	       80.0 Gop/s
PASS
`

func TestSection(t *testing.T) {
	r := newResults()
	if err := r.add([]byte(round)); err != nil {
		t.Fatal(err)
	}
	better := strings.Replace(strings.ReplaceAll(round, "-2 ", " "), "10000.00 MB/s", "12000.00 MB/s", 1) // one processor: no suffix
	if err := r.add([]byte(strings.Replace(better, "30000.00 MB/s", "29000.00 MB/s", 1))); err != nil {
		t.Fatal(err)
	}
	text, err := r.section("2026-11-30; a note.")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"AMD EPYC, 2026-11-30; a note.\n",
		"- memory, 1 thread: 20.0 GB/s read\n- memory, 2 threads: 40.0 GB/s read\n",
		"- multiply-adds of AVX2, one thread: 100 Gop/s on binary32, 200 on 16-bit integers\n",
		"| format | bits | decode, 1 thread, AVX2 | decode, 2 threads, AVX2 | prefill, AVX2 |\n|---|---:|---:|---:|---:|\n",
		"| Q4_K | 4.5 | 12.0 (60 %) | 30.0 (75 %) | 150 (75 %) |\n",
		"| F16 | 16 | 16.0 (80 %) | – | 80 (80 %) |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestRefusesOtherOutput(t *testing.T) {
	for _, out := range []string{"", "PASS\n", "BenchmarkTable/read/threads=1 1 5\n", "BenchmarkTable/read/threads=1 1 x MB/s\n"} {
		if err := newResults().add([]byte(out)); err == nil {
			t.Errorf("%q was taken for benchmarks", out)
		}
	}
	for _, out := range []string{
		"BenchmarkTable/read/threads=1 1 5 MB/s\n",
		strings.ReplaceAll(round, "Q4_K", "Q44"),
	} {
		r := newResults()
		if err := r.add([]byte(out)); err != nil {
			t.Fatal(err)
		}
		if text, err := r.section(""); err == nil {
			t.Errorf("%q became %q", out, text)
		}
	}
}

func TestReplaceSection(t *testing.T) {
	page := "a\n<!-- speed: bench/kernels.sh -->\nold\n<!-- end of speed -->\nb\n"
	got, err := replaceSection(page, "speed", "new\n")
	if err != nil || got != strings.Replace(page, "old", "new", 1) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := replaceSection(page, "accuracy", "new\n"); err == nil {
		t.Error("a section was put nowhere")
	}
}

func TestAccuracyTable(t *testing.T) {
	const table = "| format | integer path | llama.cpp |\n|---|---:|---:|\n| Q4_0 | 0.032 % (0.127) | 3.191 % (31.920) |\n| Q5_K | 0.1 % (0.1) | does not run |\n"
	if got, err := accuracyTable(table); err != nil || got != table {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "| format | integer path | llama.cpp |\n|---|---:|---:|\n", strings.Replace(table, "Q4_0", "Q4", 1),
		strings.Replace(table, "0.032 % (0.127)", "3 values, want 4", 1), table + "error\n"} {
		if got, err := accuracyTable(bad); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}
