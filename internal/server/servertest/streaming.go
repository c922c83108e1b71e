package servertest

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
	"github.com/spillway/spillway/internal/synth"
)

// Toy is the name of the model that Streaming serves.
const Toy = "toy"

// toyShape makes a model whose weights hardly fit stream.
var toyShape = spillway.ModelOptions{Context: 128, Sequences: 3, HeadRows: 8, Chunk: 16, Shared: true}

// Streaming starts a server with a model that streams its weights, and says where its file is. Memory, models and their
// options are its own.
func Streaming(t testing.TB, o Options) (s *Server, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "toy.gguf")
	if _, err := synth.Write(t.Context(), synth.Options{Shape: "toy", Type: "q8_0", Path: path, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	o.Memory, o.Specs = leastServed(t, path), []pool.Spec{{Name: Toy, Path: path}}
	o.Pool.KeepAlive, o.Pool.Model = pool.Forever, toyShape
	s = Start(t, o)
	model, err := s.Models.Find(Toy)
	if err != nil || model.Model == nil || model.Model.CurrentPlan().StreamedBytes == 0 {
		t.Fatalf("nothing is streamed: %v", err)
	}
	return s, path
}

// leastServed is hardly more than a model needs beside its server.
func leastServed(t testing.TB, path string) int64 {
	t.Helper()
	const step, most = 32 << 20, 1 << 30 // the test's own process may take much
	for memory := int64(64 << 20); memory < most; memory += step {
		least, ok := leastIn(t, path, memory)
		if !ok {
			continue
		}
		if less, ok := leastIn(t, path, least); ok { // servers take a share
			least = less
		}
		return least
	}
	t.Fatal("no memory does for a server")
	return 0
}

// leastIn is leastServed where the server has a part of so much memory; false if it has no room there.
func leastIn(t testing.TB, path string, memory int64) (least int64, ok bool) {
	t.Helper()
	rt, err := spillway.New(spillway.Options{Memory: memory, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	s, err := server.New(rt, server.Options{})
	var full *spillway.NoRoomError
	if errors.As(err, &full) {
		return 0, false
	} else if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := rt.Load(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Plan(toyShape)
	var small *spillway.TooSmallError
	switch {
	case err == nil:
		least = p.Least
	case errors.As(err, &small):
		least = small.Least
	default:
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return least + 2<<20, true
}
