package captest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// group is one memory control group of our own making.
type group struct {
	v2  bool
	dir string
}

// makeGroup makes a group below the parent with swap off. A limit of 0 sets none.
func (h hierarchy) makeGroup(limit int64) (*group, error) {
	if err := h.delegate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(h.parent, "spillway-captest-")
	if err != nil {
		return nil, fmt.Errorf("no group can be made: %w", err)
	}
	g := &group{v2: h.v2, dir: dir}
	if err := g.setLimit(limit); err != nil {
		return nil, errors.Join(err, g.remove())
	}
	return g, nil
}

func (g *group) setLimit(limit int64) error {
	if g.v2 {
		return g.setLimitV2(limit)
	}
	return g.setLimitV1(limit)
}

func (g *group) setLimitV1(limit int64) error {
	if limit > 0 {
		if err := g.write("memory.limit_in_bytes", limit); err != nil {
			return err
		}
	}
	if limit > 0 && exists(g.file("memory.memsw.limit_in_bytes")) {
		return g.write("memory.memsw.limit_in_bytes", limit)
	}
	return g.write("memory.swappiness", 0)
}

func (g *group) setLimitV2(limit int64) error {
	if exists(g.file("memory.swap.max")) {
		if err := g.write("memory.swap.max", 0); err != nil {
			return err
		}
	}
	if !exists(g.file("memory.peak")) {
		return errors.New("this kernel has no memory.peak (it came with Linux 5.19)")
	}
	if limit == 0 {
		return nil
	}
	return g.write("memory.max", limit)
}

func (g *group) file(name string) string { return filepath.Join(g.dir, name) }

func (g *group) write(name string, value int64) error {
	return os.WriteFile(g.file(name), strconv.AppendInt(nil, value, 10), 0)
}

// peak is the largest number of bytes that the group was charged with at one time.
func (g *group) peak() (int64, error) {
	name := "memory.max_usage_in_bytes"
	if g.v2 {
		name = "memory.peak"
	}
	text, err := os.ReadFile(g.file(name))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// oomKills is how many processes of the group the kernel has killed for want of memory.
func (g *group) oomKills() (int64, error) {
	name := "memory.oom_control"
	if g.v2 {
		name = "memory.events"
	}
	text, err := os.ReadFile(g.file(name))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == "oom_kill" {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no oom_kill", g.file(name))
}

// killAll ends what the command left behind in the group.
func (g *group) killAll() {
	text, err := os.ReadFile(g.file("cgroup.procs"))
	if err != nil {
		return
	}
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// remove ends what still runs in the group and removes it; the kernel may need a moment.
func (g *group) remove() error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		g.killAll()
		err := syscall.Rmdir(g.dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("group %s cannot be removed: %w", g.dir, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
