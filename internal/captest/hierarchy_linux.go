package captest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// hierarchy is a mounted cgroup tree with a memory controller, and where in it we may make groups.
type hierarchy struct {
	v2     bool
	parent string // folder below which a group can be made
}

func available() error {
	_, err := findHierarchy()
	return err
}

// findHierarchy looks for a folder in which a memory group can be made: our own group first, then
// those above it. (In v2 a group that holds processes cannot hand its controllers to children, so
// a group beside ours is often the only one possible.)
func findHierarchy() (hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return hierarchy{}, fmt.Errorf("no cgroup: %w", err)
	}
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return hierarchy{}, fmt.Errorf("no cgroup: %w", err)
	}
	var problems []error
	for _, m := range parseMounts(string(mounts)) {
		h, err := m.usable(string(self))
		if err == nil {
			return h, nil
		}
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return hierarchy{}, errors.New("no cgroup: no memory controller is mounted")
	}
	return hierarchy{}, fmt.Errorf("no cgroup: %w", errors.Join(problems...))
}

// mount is one line of mountinfo that may carry the memory controller.
type mount struct {
	v2   bool
	root string // which group of the tree is mounted
	dir  string // where
}

// parseMounts returns the v1 memory tree and the v2 tree, in the order of mountinfo.
func parseMounts(text string) []mount {
	var out []mount
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		dash := -1
		for i, f := range fields {
			if f == "-" {
				dash = i
			}
		}
		if dash < 5 || len(fields) < dash+4 {
			continue
		}
		m := mount{root: fields[3], dir: fields[4]}
		switch fields[dash+1] {
		case "cgroup2":
			m.v2 = true
			out = append(out, m)
		case "cgroup":
			for opt := range strings.SplitSeq(fields[dash+3], ",") {
				if opt == "memory" {
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// own is the folder of our own group in this mount.
func (m mount) own(self string) (string, error) {
	for line := range strings.Lines(self) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		isV1Memory := strings.Contains(","+parts[1]+",", ",memory,")
		if (m.v2 && parts[0] == "0" && parts[1] == "") || (!m.v2 && isV1Memory) {
			path := parts[2]
			if m.root != "/" {
				path = strings.TrimPrefix(path, m.root)
			}
			return filepath.Join(m.dir, path), nil
		}
	}
	return "", fmt.Errorf("we are in no group of %s", m.dir)
}

// usable tries our own group and every one above it, as far as the mount reaches.
func (m mount) usable(self string) (hierarchy, error) {
	dir, err := m.own(self)
	if err != nil {
		return hierarchy{}, err
	}
	if _, err := os.Stat(dir); err != nil {
		dir = m.dir // the path of another namespace: what is mounted is all that we see
	}
	var last error
	for {
		h := hierarchy{v2: m.v2, parent: dir}
		if last = h.try(); last == nil {
			return h, nil
		}
		if dir == m.dir || len(dir) <= len(m.dir) {
			return hierarchy{}, last
		}
		dir = filepath.Dir(dir)
	}
}

// try makes a group and removes it again.
func (h hierarchy) try() error {
	g, err := h.makeGroup(1 << 30)
	if err != nil {
		return err
	}
	return g.remove()
}

// delegate makes sure that children of the parent have the memory controller (v2 only).
func (h hierarchy) delegate() error {
	if !h.v2 {
		return nil
	}
	control := filepath.Join(h.parent, "cgroup.subtree_control")
	text, err := os.ReadFile(control)
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(text)) {
		if c == "memory" {
			return nil
		}
	}
	if err := os.WriteFile(control, []byte("+memory"), 0); err != nil {
		return fmt.Errorf("the memory controller cannot be enabled below %s: %w", h.parent, err)
	}
	return nil
}

// exists says whether the group has a file of that name.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
