package spillway

import (
	"errors"
	"testing"

	"github.com/spillway/spillway/internal/budget"
)

// A lease for the heap honours the limit before a model has a plan and while one runs, and beside it a
// model is planned with less.
func TestReserve(t *testing.T) {
	const memory = 128 << 20
	rt, err := New(Options{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	var full *budget.NoRoomError
	if _, err := rt.Reserve(memory, "text"); !errors.As(err, &full) || full.Free <= 0 || full.Free >= memory {
		t.Fatalf("as much as the limit: %v", err)
	}
	release, err := rt.Reserve(full.Free/2, "text")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Reserve(full.Free*3/4, "more"); !errors.As(err, &full) {
		t.Errorf("a second lease passes the limit: %v", err)
	}
	c, err := rt.LoadEmbedded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	beside, err := c.Plan(ModelOptions{Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	release()
	release()
	alone, err := c.Plan(ModelOptions{Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	if beside.Pools[budget.Runtime] < alone.Pools[budget.Runtime]+full.Free/4 {
		t.Errorf("the runtime pool has %d bytes beside a lease, %d alone", beside.Pools[budget.Runtime], alone.Pools[budget.Runtime])
	}
	m, err := c.Start(t.Context(), ModelOptions{Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Reserve(memory, "text"); !errors.As(err, &full) {
		t.Errorf("beside a model: %v", err)
	}
	if release, err = rt.Reserve(1<<20, "text"); err != nil {
		t.Fatal(err)
	}
	release()
	if err := errors.Join(m.Close(), c.Close(), rt.Close()); err != nil {
		t.Error(err)
	}
	if _, err := rt.Reserve(1, "text"); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed runtime: %v", err)
	}
}
