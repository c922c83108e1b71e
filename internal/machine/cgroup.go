package machine

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// tree is a Linux root file system, real or a fixture. Names in it have no leading slash.
type tree struct{ fs.FS }

// mount is a mounted cgroup hierarchy that counts memory.
type mount struct {
	version int
	root    string // the group that is mounted: a container may see a part only
	point   string
}

// own is our own group in one hierarchy, from it upwards to the mount point.
type own struct {
	mount
	dir string // directory of our group
}

// groups lists the levels above us that have a limit, our own first.
func (t tree) groups() []Group {
	var all []Group
	for _, o := range t.ownGroups() {
		for dir := o.dir; ; dir = path.Dir(dir) {
			if g, ok := t.group(o.version, dir); ok {
				all = append(all, g)
			}
			if dir == o.point || dir == "." {
				break
			}
		}
	}
	return all
}

// ownGroups finds our group in every hierarchy that counts memory.
func (t tree) ownGroups() []own {
	paths := t.cgroupPaths()
	var found []own
	seen := map[string]bool{}
	for _, m := range t.cgroupMounts() {
		p, ok := paths[m.version]
		if !ok {
			continue
		}
		dir := t.groupDir(m, p)
		if !seen[dir] {
			seen[dir] = true
			found = append(found, own{m, dir})
		}
	}
	return found
}

// groupDir is where group p lies under the mount: at the mount point itself if the mount shows
// another part, as in containers that do not have a name space for groups.
func (t tree) groupDir(m mount, p string) string {
	rel, ok := strings.CutPrefix(p, strings.TrimSuffix(m.root, "/"))
	if !ok || rel != "" && rel[0] != '/' || strings.Contains(rel, "/..") {
		return m.point
	}
	dir := path.Join(m.point, rel)
	if info, err := fs.Stat(t, dir); err != nil || !info.IsDir() {
		return m.point
	}
	return dir
}

// cgroupPaths reads /proc/self/cgroup: our group in the v1 memory hierarchy and in v2.
func (t tree) cgroupPaths() map[int]string {
	paths := map[int]string{}
	for line := range strings.Lines(t.text("proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(f) < 3:
		case f[0] == "0" && f[1] == "":
			paths[2] = f[2]
		case hasWord(f[1], "memory"):
			paths[1] = f[2]
		}
	}
	return paths
}

// cgroupMounts reads /proc/self/mountinfo, as described in proc_pid_mountinfo(5).
func (t tree) cgroupMounts() []mount {
	var all []mount
	for line := range strings.Lines(t.text("proc/self/mountinfo")) {
		front, back, ok := strings.Cut(line, " - ")
		f, b := strings.Fields(front), strings.Fields(back)
		if !ok || len(f) < 5 || len(b) < 3 {
			continue
		}
		m := mount{root: unescape(f[3]), point: strings.TrimPrefix(unescape(f[4]), "/")}
		switch {
		case b[0] == "cgroup2":
			m.version = 2
		case b[0] == "cgroup" && hasWord(b[2], "memory"):
			m.version = 1
		default:
			continue
		}
		all = append(all, m)
	}
	return all
}

// unescape undoes the octal escapes of blanks and backslashes in mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func hasWord(list, word string) bool { return strings.Contains(","+list+",", ","+word+",") }

// group reads one level; ok is false where it has no limit.
func (t tree) group(version int, dir string) (g Group, ok bool) {
	if version == 1 {
		g = t.groupV1(dir)
	} else {
		g = t.groupV2(dir)
	}
	g.Version, g.Path = version, "/"+dir
	return g, g.Limit < unlimited
}

// unlimited is what v1 writes for no limit, and more: the largest number of whole pages.
const unlimited = math.MaxInt64 &^ (1<<16 - 1)

func (t tree) groupV1(dir string) Group {
	stat := t.table(dir + "/memory.stat")
	return Group{
		// The second includes levels above the mount point, which a container cannot see.
		Limit: min(t.number(dir+"/memory.limit_in_bytes", math.MaxInt64),
			stat.get("hierarchical_memory_limit", math.MaxInt64)),
		Usage: t.number(dir+"/memory.usage_in_bytes", 0),
		Reclaimable: max(0, stat.get("total_active_file", 0)+stat.get("total_inactive_file", 0)-
			stat.get("total_dirty", 0)-stat.get("total_writeback", 0)),
	}
}

func (t tree) groupV2(dir string) Group {
	stat := t.table(dir + "/memory.stat")
	return Group{
		// Above memory.high nothing is killed, but everything is slowed down until it is below.
		Limit: min(t.number(dir+"/memory.max", math.MaxInt64), t.number(dir+"/memory.high", math.MaxInt64)),
		Usage: t.number(dir+"/memory.current", 0),
		Reclaimable: max(0, stat.get("active_file", 0)+stat.get("inactive_file", 0)+
			stat.get("slab_reclaimable", 0)-stat.get("file_dirty", 0)-stat.get("file_writeback", 0)),
	}
}

// peak is the most that our own group ever used; not known in a root group, which counts the whole
// machine, and in a group that counts other processes beside pid.
func (t tree) peak(pid int) (int64, bool) {
	for _, o := range t.ownGroups() {
		if !t.alone(o.dir, pid) {
			continue
		}
		file := o.dir + "/memory.peak"
		if o.version == 1 {
			file = o.dir + "/memory.max_usage_in_bytes"
			if _, err := fs.Stat(t, o.dir+"/release_agent"); err == nil {
				continue // only a root group has this file
			}
		}
		if n := t.number(file, -1); n >= 0 {
			return n, true
		}
	}
	return 0, false
}

// alone reports whether a group has no process but pid, and no groups below it.
func (t tree) alone(dir string, pid int) bool {
	if strings.TrimSpace(t.text(dir+"/cgroup.procs")) != strconv.Itoa(pid) {
		return false
	}
	entries, err := fs.ReadDir(t, dir)
	return err == nil && !slices.ContainsFunc(entries, fs.DirEntry.IsDir)
}

// text is the contents of a small file, or "".
func (t tree) text(name string) string {
	b, err := fs.ReadFile(t, name)
	if err != nil {
		return ""
	}
	return string(b)
}

// number reads a file that holds one; max, a missing file and nonsense give the other value.
func (t tree) number(name string, other int64) int64 {
	return parseNumber(t.text(name), other)
}

func parseNumber(s string, other int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return other
	}
	return n
}

// table is a file of lines such as "name: value kB" or "name value".
type table map[string]string

func (t tree) table(name string) table {
	lines := table{}
	for line := range strings.Lines(t.text(name)) {
		if end := strings.IndexAny(line, ": \t"); end > 0 {
			lines[line[:end]] = strings.Trim(line[end:], ": \t\n")
		}
	}
	return lines
}

func (t table) get(key string, other int64) int64 { return parseNumber(t[key], other) }

// kilobytes reads a value such as "1024 kB", in bytes.
func (t table) kilobytes(key string) (int64, error) {
	s, ok := strings.CutSuffix(t[key], " kB")
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt64/KiB {
		return 0, fmt.Errorf("%s is %q, not a number of kB", key, t[key])
	}
	return n * KiB, nil
}
