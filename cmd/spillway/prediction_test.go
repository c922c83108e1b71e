package main

import (
	"path/filepath"
	"testing"
)

// A conversation's model is started with what --prediction says.
func TestChatPrediction(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m.gguf")
	s, out := testSession(t, nil)
	if code := s.main([]string{"synth", "toy-moe", "--type", "q8_0", "--out", model}); code != exitFine {
		t.Fatal(out)
	}
	s.flags = globals{Memory: "128MiB"}
	o, err := s.openNamed(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	c := chatCommand{predictionFlag: predictionFlag{"off"}}
	text := newTextLease(o.rt)
	m, err := c.startChat(t.Context(), s, o, text, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Options().Prediction; got != "off" {
		t.Errorf("prediction is %q", got)
	}
	err = m.Close()
	text.release()
	if err := o.close(err); err != nil {
		t.Error(err)
	}
}
