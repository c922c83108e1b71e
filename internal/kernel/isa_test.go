package kernel

import (
	"slices"
	"strings"
	"testing"
)

func TestISASelection(t *testing.T) {
	before := ISA()
	restore := Force("go")
	if ISA() != "go" {
		t.Error("go was not selected")
	}
	restore()
	if ISA() != before || !slices.Contains(ISAs(), before) {
		t.Errorf("%s after restore, %s before", ISA(), before)
	}
	if err := Use("mmx"); err == nil || !strings.Contains(err.Error(), "go") {
		t.Errorf("an unknown set: %v", err)
	}
}

func TestISAEnvironment(t *testing.T) {
	defer Force(ISA())()
	t.Setenv("SPILLWAY_CPU", "go")
	if err := useEnv(); err != nil || ISA() != "go" {
		t.Errorf("go: %v, %s", err, ISA())
	}
	t.Setenv("SPILLWAY_CPU", "abacus")
	if err := useEnv(); err == nil || !strings.Contains(err.Error(), "SPILLWAY_CPU") {
		t.Errorf("abacus: %v", err)
	}
}
