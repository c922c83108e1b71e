package spillway

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/synth"
)

// A streamed decode reads per token what the plan says and no more: by our counters exactly, by the
// operating system's within 1 %.
func TestStreamedBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toy.gguf")
	if _, err := synth.Write(context.Background(), synth.Options{Shape: "toy", Type: "f16", Path: path}); err != nil {
		t.Fatal(err)
	}
	const tokens = 40
	o := ModelOptions{Context: 64}
	rt, m := openNear(t, path, leastFor(t, path, 2, o), 2, o)
	defer rt.Close()
	defer m.Close()
	run := func() {
		t.Helper()
		if _, err := m.Probe(context.Background(), Probe{IDs: []int32{1, 2, 3}, Greedy: tokens}); err != nil {
			t.Fatal(err)
		}
	}
	run() // fills what stays in memory
	settle(m)
	before, kernelBefore := m.IO(), kernelReads(t)
	run()
	settle(m)
	io, kernelRead := m.IO().Sub(before), kernelReads(t)-kernelBefore
	p := m.CurrentPlan()
	if p.StreamedBytes == 0 {
		t.Fatal("the least memory streams nothing: the test shows nothing")
	}
	// The prompt's sweep and those of all tokens but the last; the ring reads ahead of both ends alike.
	sweeps := int64(tokens)
	// At the end of the file a request gets less than the whole block that the plan counts.
	over := sweeps*p.ReadBytes - io.Streamed()
	if io.Sweeps != sweeps || over < 0 || over >= sweeps*int64(p.Placement.Align) {
		t.Errorf("%d sweeps streamed %d bytes, the plan says %d × %d", io.Sweeps, io.Streamed(), sweeps, p.ReadBytes)
	}
	if off := math.Abs(float64(kernelRead)/float64(io.Read) - 1); off > 0.01 {
		t.Errorf("the kernel counts %d bytes, we count %d: %.2f %% apart", kernelRead, io.Read, 100*off)
	}
}

// settle waits until the ring has read ahead as far as it goes: until nothing is read for a while.
func settle(m *Model) {
	for last := int64(-1); m.IO().Read != last; time.Sleep(100 * time.Millisecond) {
		last = m.IO().Read
	}
}

// kernelReads is what the kernel's read calls have returned to the process, which is what a drive would
// have given: the temporary folder may be in memory.
func kernelReads(t *testing.T) int64 {
	t.Helper()
	io, ok := machine.ReadIO()
	if !ok {
		t.Skip("skipped: the operating system does not count reads")
	}
	return io.ReadChars
}
