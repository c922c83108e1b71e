package pool_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/pool"
)

// A model that was asked for by a short name is listed by it, and answers to its own name.
func TestShortNames(t *testing.T) {
	rt, err := spillway.New(spillway.Options{Memory: 256 << 20, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	for short, want := range map[bool]string{true: "tale", false: "storyteller"} {
		p, err := pool.New(t.Context(), rt, []pool.Spec{{Alias: "tale", Short: short}}, pool.Options{Try: true})
		if err != nil {
			t.Fatal(err)
		}
		if names := p.Names(); !slices.Equal(names, []string{want}) {
			t.Errorf("short %t: listed as %s", short, names)
		}
		for _, name := range []string{"tale", "storyteller", "storyteller:latest"} {
			if s, err := p.Find(name); err != nil || s.Name != want {
				t.Errorf("short %t: %s is %q, %v", short, name, s.Name, err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Where the first model has no room, a pool that is to try it is not made, and holds nothing.
func TestTry(t *testing.T) {
	rt, err := spillway.New(spillway.Options{Memory: 12 << 20, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	var small *spillway.TooSmallError
	_, err = pool.New(t.Context(), rt, []pool.Spec{{}}, pool.Options{Try: true})
	if !errors.As(err, &small) || !strings.HasPrefix(err.Error(), "loading the model storyteller: ") {
		t.Errorf("%v", err)
	}
	if used := rt.Ledger().Used; used != 0 {
		t.Errorf("%d bytes are still leased", used)
	}
	p, err := pool.New(t.Context(), rt, []pool.Spec{{}}, pool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
