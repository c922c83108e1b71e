package kernel

import (
	"fmt"
	"os"
	"strings"
)

// isaOps is what an instruction set offers: one entry per hot loop. Every set computes the same bits.
type isaOps struct {
	name   string
	matmul matmulOps
	vector vectorOps
	peak   peakOps
}

// isaTable lists the sets that this processor can run, from the slowest to the fastest; active is the
// one in use. It changes only at start and in tests, never while products run.
var (
	isaTable = append([]*isaOps{&goOps}, nativeOps()...)
	active   = isaTable[len(isaTable)-1]
	envErr   = useEnv()
)

var goOps = isaOps{name: "go", matmul: goMatmul, vector: goVector}

// ISA returns the name of the instruction set in use: "go" for the pure Go reference,
// "avx2", "avx512" or "neon".
func ISA() string { return active.name }

// EnvError returns what is wrong with the environment variable SPILLWAY_CPU, or nil. A wrong value
// changes nothing; commands report it before they start.
func EnvError() error { return envErr }

// Use selects an instruction set by name. It must not be called while products run.
func Use(isa string) error {
	var names []string
	for _, o := range isaTable {
		if o.name == isa {
			active = o
			return nil
		}
		names = append(names, o.name)
	}
	return fmt.Errorf("instruction set %q is not available here; choose one of %s", isa, strings.Join(names, ", "))
}

// Force selects an instruction set for a test and returns the function that restores the previous
// one. It panics where this processor lacks the set.
func Force(isa string) (restore func()) {
	before := active
	if err := Use(isa); err != nil {
		panic(err)
	}
	return func() { active = before }
}

// ISAs returns the names of the sets that this processor can run.
func ISAs() []string {
	var names []string
	for _, o := range isaTable {
		names = append(names, o.name)
	}
	return names
}

func useEnv() error {
	name := strings.ToLower(os.Getenv("SPILLWAY_CPU"))
	if name == "" {
		return nil
	}
	if err := Use(name); err != nil {
		return fmt.Errorf("SPILLWAY_CPU: %w", err)
	}
	return nil
}
