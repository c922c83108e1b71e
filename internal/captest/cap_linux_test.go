package captest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spillway/spillway/internal/captest"
	"github.com/spillway/spillway/internal/testutil"
)

const (
	// idlePeak is what the program may take before it does anything: the kernel reads nearly all of its file, which has
	// 21 MiB since it serves HTTP.
	idlePeak = 24 * mib
	// leastSlack is how far the promised least may be above the smallest cap that survives. 1.25 was measured: pages of
	// the program are counted in full, and in a group that is too small the kernel takes them away.
	leastSlack = 1.3
	exitNoRoom = 3
	// runTime ends a run that hangs, or thrashes in a group that is too small. It decides nothing else.
	runTime = 4 * time.Minute
)

// program is the real binary, built once on a file system that keeps files out of memory.
var program = sync.OnceValues(func() (string, error) {
	dir, err := diskFolder()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "spillway")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/spillway/spillway/cmd/spillway") // as the README says
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

func diskFolder() (string, error) {
	dir, err := os.MkdirTemp("", "captest-")
	if err != nil {
		return "", err
	}
	scratch = append(scratch, dir)
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return dir, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	dir, err = os.MkdirTemp(cache, "captest-")
	scratch = append(scratch, dir)
	return dir, err
}

func needProgram(t *testing.T) string {
	t.Helper()
	needGroups(t)
	testutil.WatchTree(t)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// capCase is a model with the lengths that it is run with.
type capCase struct {
	bin     string
	model   string
	prompt  string
	context int
	tokens  int
}

// outcome is one run of the program in a group.
type outcome struct {
	captest.Result
	report struct {
		IDs   []int `json:"ids"`
		Model struct {
			WeightBytes int64 `json:"weight_bytes"`
		} `json:"model"`
		Memory struct {
			Budget     int64 `json:"budget"`
			LedgerPeak int64 `json:"ledger_peak"`
			Least      int64 `json:"least"`
		} `json:"memory"`
		IO struct {
			ReadBytes int64 `json:"read_bytes"`
		} `json:"io"`
	}
}

// least asks the program's own plan.
func (c capCase) least(t *testing.T) int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.bin, "plan", "--json", "--context", strconv.Itoa(c.context), c.model)
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("plan: %v: %s", err, failed.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Least int64 `json:"least"`
	}
	if err := json.Unmarshal(out, &plan); err != nil || plan.Least <= 0 {
		t.Fatalf("plan printed %q: %v", out, err)
	}
	return plan.Least
}

// run answers the prompt with a budget of memory bytes in a group of limit bytes, from cold files.
// An error is a run that did not end in time.
func (c capCase) run(t *testing.T, memory, limit int64, patience time.Duration) (outcome, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var o outcome
	var err error
	o.Result, err = captest.Run{
		Limit: limit, Cold: []string{c.bin, c.model}, Path: c.bin,
		Args: []string{"run", "--json", "--quiet", "--raw", "--temperature", "0",
			"--memory", strconv.FormatInt(memory, 10), "--context", strconv.Itoa(c.context),
			"--max-tokens", strconv.Itoa(c.tokens), c.model, c.prompt},
		Stdin: strings.NewReader(""),
	}.Do(ctx)
	if err != nil || o.Killed || o.Exit != 0 {
		return o, err
	}
	if err := json.Unmarshal(o.Stdout, &o.report); err != nil {
		t.Fatalf("run printed %q: %v", o.Stdout, err)
	}
	return o, nil
}

// survivor is run, and a failure unless the program finished.
func (c capCase) survivor(t *testing.T, memory, limit int64) outcome {
	t.Helper()
	o, err := c.run(t, memory, limit, runTime)
	switch {
	case err != nil:
		t.Fatal(err)
	case o.Killed:
		t.Fatalf("killed with --memory %s in a group of %s (peak %s, %d kills)", size(memory), size(limit), size(o.Peak), o.OOMKills)
	case o.Exit != 0:
		t.Fatalf("exit %d with --memory %s: %s", o.Exit, size(memory), o.Stderr)
	case len(o.report.IDs) == 0:
		t.Fatalf("no tokens with --memory %s: %s", size(memory), o.Stdout)
	}
	return o
}

func size(n int64) string { return fmt.Sprintf("%.2f MiB", float64(n)/mib) }

// checkCap is the whole test of one model.
func (c capCase) checkCap(t *testing.T) {
	least := c.least(t)
	free := c.survivor(t, 64<<30, 0)
	weights := free.report.Model.WeightBytes
	if weights <= 0 {
		t.Fatalf("the report has no weight_bytes: %s", free.Stdout)
	}
	t.Logf("least %s, weights %s, ids %v", size(least), size(weights), free.report.IDs)
	for _, memory := range []int64{least, 2 * least, least + weights/2, least + weights} {
		t.Run(fmt.Sprintf("memory=%dMiB", memory/mib), func(t *testing.T) {
			c.checkBudget(t, memory, free.report.IDs)
		})
	}
	t.Run("below", func(t *testing.T) { c.checkRefusal(t, least) })
}

// checkBudget: in a group of exactly the budget the program survives, in a wide one the kernel
// counts no more than the budget, and both say what an unlimited run says.
func (c capCase) checkBudget(t *testing.T, memory int64, want []int) {
	tight := c.survivor(t, memory, memory)
	wide := c.survivor(t, memory, 4*memory+(1<<30))
	t.Logf("--memory %s: peak %s in a group of the same size, %s in a wide one; leased %s; read %s in %.1f s",
		size(memory), size(tight.Peak), size(wide.Peak), size(wide.report.Memory.LedgerPeak),
		size(wide.report.IO.ReadBytes), wide.Elapsed.Seconds())
	if wide.Peak > memory {
		t.Errorf("the kernel counted %s with --memory %s", size(wide.Peak), size(memory))
	}
	for _, o := range []outcome{tight, wide} {
		if !slices.Equal(o.report.IDs, want) {
			t.Errorf("--memory %s gives ids %v, unlimited %v", size(memory), o.report.IDs, want)
		}
	}
}

// amount is a number of bytes as the program writes them for people.
var amount = regexp.MustCompile(`(\d+(?:\.\d+)?) ?(KiB|MiB|GiB|bytes\b|B\b)`)

// amounts are the byte counts that a message names.
func amounts(text string) []float64 {
	var out []float64
	for _, m := range amount.FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			continue
		}
		unit := map[string]float64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[m[2]]
		out = append(out, v*max(unit, 1))
	}
	return out
}

// checkRefusal: 1 MiB below the least the program refuses, and names an amount that would do.
func (c capCase) checkRefusal(t *testing.T, least int64) {
	o, err := c.run(t, least-mib, 0, runTime)
	if err != nil {
		t.Fatal(err)
	}
	if o.Exit != exitNoRoom || len(o.Stdout) > 0 {
		t.Fatalf("exit %d with 1 MiB less than the planned least of %s (this run says %s); %d bytes of output, errors %q",
			o.Exit, size(least), size(o.report.Memory.Least), len(o.Stdout), o.Stderr)
	}
	t.Logf("refusal: %s", strings.TrimSpace(string(o.Stderr)))
	named := slices.ContainsFunc(amounts(string(o.Stderr)), func(v float64) bool {
		return v >= float64(least) && v < float64(least+mib)
	})
	if !named {
		t.Errorf("the refusal does not name the least of %s: %s", size(least), o.Stderr)
	}
}

const thrashing = 20

// checkSlack: the promised least is at most leastSlack times the smallest group that it survives in. Just
// above that size a program lives on, but hardly gets anywhere: it reads its own code from the drive again
// and again. Such a run is given up after a minute, or five times what it takes at the least, and is no survivor with
// thrashing times the major faults, however fast the drive is.
func (c capCase) checkSlack(t *testing.T, least int64) {
	at := c.survivor(t, least, least)
	patience := max(time.Minute, 5*at.Elapsed)
	survives := func(limit int64) bool {
		o, err := c.run(t, least, limit, patience)
		if err != nil && t.Context().Err() != nil {
			t.Fatal(err)
		}
		ok := err == nil && !o.Killed && o.Exit == 0 && o.Faults <= thrashing*max(at.Faults, 100)
		t.Logf("a group of %s: survives %v, killed %v, exit %d, %d major faults, %.1f s; at the least %d and %.1f s", size(limit), ok, o.Killed, o.Exit,
			o.Faults, o.Elapsed.Seconds(), at.Faults, at.Elapsed.Seconds())
		return ok
	}
	low, high := int64(float64(least)/leastSlack), least
	if survives(low) {
		t.Fatalf("the least is promised as %s, and %s is enough", size(least), size(low))
	}
	for high-low > mib {
		if mid := (low + high) / 2; survives(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	t.Logf("the smallest group that survives has %s: the least of %s is %.2f times that", size(high), size(least), float64(least)/float64(high))
}

func TestAmountsSelf(t *testing.T) {
	got := amounts("needs 45.5 MiB (47710208 bytes), has 1GiB: 3 blocks")
	if want := []float64{45.5 * mib, 47710208, 1 << 30}; !slices.Equal(got, want) {
		t.Errorf("amounts %v, want %v", got, want)
	}
}

func TestIdlePeak(t *testing.T) {
	bin := needProgram(t)
	res, err := captest.Run{Cold: []string{bin}, Path: bin, Args: []string{"version"}}.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if res.Exit != 0 {
		t.Fatalf("version: exit %d: %s", res.Exit, res.Stderr)
	}
	t.Logf("idle peak from a cold start: %s", size(res.Peak))
	if res.Peak >= idlePeak {
		t.Errorf("the idle process takes %s, more than %s", size(res.Peak), size(idlePeak))
	}
}

// story is a prompt of some length: the cache must be full where its size is part of what is tested.
func story(sentences int) string {
	return strings.Repeat("The river went down to the sea and the fox went with it. ", sentences)
}

func needBig(t *testing.T) {
	t.Helper()
	if os.Getenv("SPILLWAY_BIG") == "" {
		t.Skip("skipped: SPILLWAY_BIG is not set (it takes minutes, and 2.2 GB of disk for a model that it makes)")
	}
}

// smolLM2 fills 512 tokens of context, or 64 for a quick run.
func smolLM2(t *testing.T, context int) capCase {
	t.Helper()
	model := testutil.SmolLM2(t)
	return capCase{bin: needProgram(t), model: model, prompt: story((context - 8) / 14), context: context, tokens: 6}
}

func TestCapSmolLM2(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	if least := smolLM2(t, 512).least(t); least > 48*mib {
		t.Errorf("SmolLM2 needs %s with 512 tokens of context, more than 48 MiB", size(least))
	}
	smolLM2(t, 64).checkCap(t)
}

// TestCapTinyModel: what a program takes while it starts (its file, read ahead; the tokenizer before
// the model) must be in the least too, which shows where the model is small. The least that one
// process promises must do for the next one.
func TestCapTinyModel(t *testing.T) {
	model := testutil.Shared(t, "oracle-gguf/models/qwen2.gguf")
	c := capCase{bin: needProgram(t), model: model, prompt: "a", context: 16, tokens: 2}
	least := c.least(t)
	for range 3 {
		o := c.survivor(t, least, 0)
		t.Logf("--memory %s: peak %s", size(least), size(o.Peak))
		if o.Peak > least {
			t.Errorf("the kernel counted %s with --memory %s", size(o.Peak), size(least))
		}
	}
}

// TestCapExperts: experts in a ring of tiles, in a few slots, and all in memory.
func TestCapExperts(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	c := capCase{bin: needProgram(t), model: filepath.Join(t.TempDir(), "toy.gguf"), prompt: story(2), context: 128, tokens: 12}
	if out, err := exec.CommandContext(t.Context(), c.bin, "synth", "toy-moe", "--type", "f32", "--out", c.model).CombinedOutput(); err != nil {
		t.Fatalf("synth: %v\n%s", err, out)
	}
	c.checkCap(t)
}

func TestCapSmolLM2Full(t *testing.T) {
	needBig(t)
	smolLM2(t, 512).checkCap(t)
}

func TestSlackSmolLM2(t *testing.T) {
	needBig(t)
	c := smolLM2(t, 512)
	c.checkSlack(t, c.least(t))
}

// tinyLlama is a 1.1 B-parameter model of 2.2 GB, made once in the cache folder.
func tinyLlama(t *testing.T) capCase {
	t.Helper()
	needBig(t)
	bin := needProgram(t)
	return capCase{bin: bin, model: bigModel(t, bin), prompt: story(4), context: 128, tokens: 3}
}

func TestCapTinyLlama(t *testing.T) {
	c := tinyLlama(t)
	if least := c.least(t) - kvBytesPerToken*int64(c.context); least > 64*mib {
		t.Errorf("1.1 B in F16 needs %s besides its key-value cache, more than 64 MiB", size(least))
	}
	c.checkCap(t)
}

// kvBytesPerToken of the shape: 22 layers, 4 heads of 64 for keys and values, f16.
const kvBytesPerToken = 22 * 2 * 4 * 64 * 2

func bigModel(t *testing.T, bin string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	path := filepath.Join(cache, "spillway-models", "tinyllama-1.1b-f16.gguf")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	part := path + ".part.gguf"
	cmd := exec.CommandContext(t.Context(), bin, "synth", "tinyllama-1.1b", "--type", "f16", "--out", part)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("synth: %v\n%s", err, out)
	}
	if err := os.Rename(part, path); err != nil {
		t.Fatal(err)
	}
	return path
}
