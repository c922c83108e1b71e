package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway"
)

func TestVisible(t *testing.T) {
	for s, want := range map[string]string{
		"plain text": "plain text", "Grüße": "Grüße", "a\x1b[2Jb": `"a\x1b[2Jb"`, "\xff": `"\xff"`, "0123456789abc": "0123456789…",
	} {
		if got := visible(s, 10); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	var nobody *progress
	nobody.set(1, 2)
	nobody.end()
	var b bytes.Buffer
	p := &progress{w: &b, label: "writing", start: time.Now().Add(-10 * time.Second)}
	p.set(1<<20, 4<<20)
	p.set(2<<20, 4<<20) // too soon to be shown
	p.end()
	if got := b.String(); !strings.HasPrefix(got, "\rwriting ██████  ") || !strings.Contains(got, "1 MiB of 4 MiB, 30.") || strings.Contains(got, "2 MiB") {
		t.Errorf("%q", got)
	}
}

// A chat's context is the model's, or the longest that the memory holds.
func TestFittingContext(t *testing.T) {
	s, _ := testSession(t, nil)
	s.flags = globals{Memory: "512MiB"}
	o, err := s.openNamed(t.Context(), "storyteller")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := fittingContext(o, 512, spillway.ModelOptions{}); n != 512 || err != nil {
		t.Errorf("%d, %v, want the model's 512", n, err)
	}
	n, err := fittingContext(o, 1<<20, spillway.ModelOptions{})
	if err != nil || n < 512 || n >= 1<<20 || n%64 != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := o.Plan(spillway.ModelOptions{Context: n * 2}); err == nil {
		t.Errorf("%d tokens fit too", n*2)
	}
	if err := o.close(nil); err != nil {
		t.Error(err)
	}
	s.flags.Memory = "2MiB"
	if o, err = s.openNamed(t.Context(), "storyteller"); err != nil {
		t.Fatal(err)
	}
	if _, err := fittingContext(o, 512, spillway.ModelOptions{}); exitCode(err) != exitMemory {
		t.Errorf("error %v, want that the memory is too small", err)
	}
	if err := o.close(nil); err != nil {
		t.Error(err)
	}
}
