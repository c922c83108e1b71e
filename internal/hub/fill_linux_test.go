package hub

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ownDisk is a variable that tells a test that it runs in a mount namespace of its own.
const ownDisk = "SPILLWAY_TEST_OWN_DISK"

// A disk that fills in the midst of a pull ends it with an error that says so, at once; what is here stays, and the next
// pull goes on from there.
func TestADiskFills(t *testing.T) {
	if os.Getenv(ownDisk) != "" {
		fillInTheMidst(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestADiskFills$", "-test.v") //nolint:gosec // itself
	child.Env = append(os.Environ(), ownDisk+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := child.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &failed):
		t.Skipf("skipped: no mount namespaces here: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("skipped: %s", out)
	case err != nil || !strings.Contains(string(out), "--- PASS: TestADiskFills"):
		t.Errorf("%v: %s", err, out)
	}
}

func fillInTheMidst(t *testing.T) {
	s, h := newRogue(t)
	const rest = 100 << 10
	dir, _ := h.Getenv("HOME")
	if err := unix.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d", margin+(8<<20))); err != nil {
		t.Skipf("no disks can be made here: %v", err)
	}
	defer unix.Unmount(dir, 0) //nolint:errcheck // the namespace ends with the process
	filler, from, gets := filepath.Join(dir, "filler"), "", 0
	s.twist = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "model.safetensors") {
			return false
		}
		if from = r.Header.Get("Range"); gets == 0 { // somebody else fills the disk
			if err := fill(filler, dir, rest); err != nil {
				t.Error(err)
			}
		}
		gets++
		return false
	}
	if _, err := pullQuickly(t, h, "owner/model"); !errors.Is(err, syscall.ENOSPC) || gets != 1 {
		t.Fatalf("after %d answers: %v", gets, err)
	}
	parts, err := filepath.Glob(filepath.Join(dir, ".cache", "huggingface", "hub", "*", "blobs", "*"+incomplete))
	if err != nil || len(parts) != 1 {
		t.Fatalf("%v, %v", parts, err)
	}
	info, err := os.Stat(parts[0])
	if err != nil || info.Size() == 0 || info.Size() > rest {
		t.Fatalf("%v, %v", info, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	m, err := pullQuickly(t, h, "owner/model")
	if err != nil || from != fmt.Sprintf("bytes=%d-", info.Size()) {
		t.Fatalf("resumed with %q: %v", from, err)
	}
	if got, err := os.ReadFile(filepath.Join(m.Path, "model.safetensors")); err != nil || string(got) != string(s.files["model.safetensors"]) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
}

// fill writes a file that leaves so many bytes of a disk.
func fill(path, dir string, rest int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	var stat unix.Statfs_t
	err = unix.Statfs(dir, &stat)
	if err == nil {
		_, err = io.CopyN(f, zeros{}, int64(stat.Bavail)*stat.Bsize-rest)
	}
	return errors.Join(err, f.Close())
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
