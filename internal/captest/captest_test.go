package captest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/captest"
)

// The test binary is its own helper: with this variable it touches so many MiB and says so, exits
// with 7 when it is "fail", or reads the file whose name follows "read:".
const helperVar = "SPILLWAY_CAPTEST_HELPER"

func TestMain(m *testing.M) {
	job := os.Getenv(helperVar)
	if job == "" {
		code := m.Run()
		for _, dir := range scratch {
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	}
	os.Exit(helper(job))
}

func helper(job string) int {
	if job == "fail" {
		fmt.Fprintln(os.Stderr, "as asked")
		return 7
	}
	if path, ok := strings.CutPrefix(job, "read:"); ok {
		data, err := os.ReadFile(path)
		fmt.Println(len(data), err)
		return 0
	}
	n, err := strconv.Atoi(job)
	if err != nil {
		return 2
	}
	held := make([]byte, n<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	fmt.Println("touched", len(held)>>20, "sum", bytes.Count(held, []byte{1}))
	return 0
}

// scratch is removed when the tests end.
var scratch []string

func needGroups(t *testing.T) {
	t.Helper()
	if err := captest.Available(); err != nil {
		t.Skipf("skipped: %v", err)
	}
}

func runHelper(t *testing.T, job string, limit int64) captest.Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := captest.Run{
		Limit: limit, Path: self, Env: []string{helperVar + "=" + job},
		Stdin: strings.NewReader(""),
	}.Do(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

const mib = 1 << 20

func TestBelowTheNeedIsKilled(t *testing.T) {
	needGroups(t)
	res := runHelper(t, "96", 64*mib)
	if !res.Killed || res.OOMKills == 0 || res.Exit == 0 {
		t.Fatalf("96 MiB in a group of 64 MiB survived: exit %d, killed %v, %d kills, output %q",
			res.Exit, res.Killed, res.OOMKills, res.Stdout)
	}
	if res.Peak > 64*mib+64<<10 { // the charge that fails counts for a moment
		t.Errorf("the peak of %d bytes is above the limit", res.Peak)
	}
}

func TestAboveTheNeedIsCounted(t *testing.T) {
	needGroups(t)
	for _, limit := range []int64{0, 160 * mib} {
		res := runHelper(t, "96", limit)
		if res.Killed || res.Exit != 0 || !strings.Contains(string(res.Stdout), "touched 96") {
			t.Fatalf("limit %d: exit %d, killed %v, output %q, errors %q", limit, res.Exit, res.Killed, res.Stdout, res.Stderr)
		}
		if res.Peak < 96*mib || res.Peak > 120*mib {
			t.Errorf("limit %d: the peak of %d bytes is not 96 MiB and a little", limit, res.Peak)
		}
	}
}

func TestExitCodeAndErrors(t *testing.T) {
	needGroups(t)
	res := runHelper(t, "fail", 64*mib)
	if res.Exit != 7 || res.Killed || !strings.Contains(string(res.Stderr), "as asked") {
		t.Fatalf("exit %d, killed %v, errors %q", res.Exit, res.Killed, res.Stderr)
	}
}

func TestTimeoutIsAnError(t *testing.T) {
	needGroups(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := captest.Run{Path: "/bin/sleep", Args: []string{"60"}}.Do(ctx)
	if err == nil {
		t.Fatal("a command that was cut off gave no error")
	}
}

func TestMissingProgram(t *testing.T) {
	needGroups(t)
	res, err := captest.Run{Path: filepath.Join(t.TempDir(), "absent")}.Do(t.Context())
	if err == nil && res.Exit == 0 {
		t.Fatal("a program that does not exist ended well")
	}
}

// A file that was read before the run would be charged to nobody in it: the page cache counts only
// when the file has left it, so this is the check that cold means cold.
func TestColdFilesAreCharged(t *testing.T) {
	needGroups(t)
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 32*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := captest.Cached(path); err != nil || n != 32*mib {
		t.Fatalf("a file just written has %d bytes in the page cache, error %v", n, err)
	}
	if err := captest.Evict(path); err != nil {
		t.Skipf("skipped: %v", err)
	}
	if n, err := captest.Cached(path); err != nil || n != 0 {
		t.Fatalf("%d bytes stay in the page cache, error %v", n, err)
	}
	warm := runHelper(t, "read:"+path, 0) // fills the cache
	again := runHelper(t, "read:"+path, 0)
	if warm.Peak < again.Peak+24*mib {
		t.Errorf("reading a cold file of 32 MiB counted %d bytes, a warm one %d", warm.Peak, again.Peak)
	}
}
