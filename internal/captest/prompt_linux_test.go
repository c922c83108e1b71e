package captest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/captest"
)

// TestCapLongPrompt: a prompt that comes by a pipe counts against the cap while it is read and encoded,
// before any model has a plan. A single word is the worst for the tokenizer.
func TestCapLongPrompt(t *testing.T) {
	const memory = 64 * mib
	bin := needProgram(t)
	for _, c := range []struct {
		name   string
		prompt string
		args   []string
		exit   int
		want   string
	}{
		{"no room", strings.Repeat("x", 4*mib), []string{"--raw"}, exitNoRoom, "64 MiB is too little memory for a prompt of 4 MiB: it needs at least "},
		{"no room with template", strings.Repeat("x", 4*mib), nil, exitNoRoom, "64 MiB is too little memory for a prompt of 4 MiB: it needs at least "},
		{"too long for the context", strings.Repeat("x", 640<<10), []string{"--raw", "--context", "512"}, 2, "do not fit in a context of 512"},
		{"too long with template", strings.Repeat("x", 640<<10), []string{"--context", "512"}, 2, "do not fit in a context of 512"},
		{"spaces", strings.Repeat(" ", 200<<10), []string{"--raw", "--context", "512"}, 2, "do not fit in a context of 512"},
		{"too long for the memory", strings.Repeat("x y ", 100<<10), []string{"--raw"}, exitNoRoom, "64 MiB is too little memory for this model: it needs at least "},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), runTime)
			defer cancel()
			res, err := captest.Run{
				Cold: []string{bin}, Path: bin, Stdin: strings.NewReader(c.prompt),
				Args: append([]string{"run", "--temperature", "0", "--memory", fmt.Sprint(memory), "-"}, c.args...),
			}.Do(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("peak %s: %s", size(res.Peak), res.Stderr)
			if res.Exit != c.exit || !strings.Contains(string(res.Stderr), c.want) || strings.Count(string(res.Stderr), "\n") != 1 || len(res.Stdout) > 0 {
				t.Errorf("exit %d, output %q, errors %q", res.Exit, res.Stdout, res.Stderr)
			}
			if res.Peak > memory {
				t.Errorf("the kernel counted %s with --memory %s", size(res.Peak), size(memory))
			}
		})
	}
}
