package machine

import (
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const meminfo = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n"

// noLimit is how a v1 kernel writes it.
const noLimit = "9223372036854771712\n"

func fixture(files map[string]string) tree {
	m := fstest.MapFS{"proc/meminfo": {Data: []byte(meminfo)}}
	for name, data := range files {
		m[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return tree{m}
}

// groupsTest is a tree of files and the groups that it says we are in.
type groupsTest struct {
	name  string
	files map[string]string
	want  []Group
}

func groupsTests() []groupsTest {
	const v2Stat = "anon 100\nfile 900\ninactive_file 300\nactive_file 200\nslab_reclaimable 50\nfile_dirty 40\nfile_writeback 10\n"
	const v1Stat = "cache 1\ninactive_file 7\nhierarchical_memory_limit %\ntotal_inactive_file 300\ntotal_active_file 200\ntotal_dirty 40\ntotal_writeback 10\n"
	v1stat := func(limit string) string {
		return "hierarchical_memory_limit " + limit + v1Stat[len("cache 1\ninactive_file 7\nhierarchical_memory_limit %"):]
	}
	return []groupsTest{
		{"no groups at all", nil, nil},
		{"v2 without limit", map[string]string{
			"proc/self/cgroup":                    "0::/user.slice\n",
			"proc/self/mountinfo":                 "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
			"sys/fs/cgroup/user.slice/memory.max": "max\n",
		}, nil},
		{"v2 nested, one of the levels without limit", map[string]string{
			"proc/self/cgroup":                       "0::/a/b/c\n",
			"proc/self/mountinfo":                    "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/a/memory.max":             "4000\n",
			"sys/fs/cgroup/a/memory.current":         "3000\n",
			"sys/fs/cgroup/a/memory.stat":            v2Stat,
			"sys/fs/cgroup/a/b/memory.max":           "max\n",
			"sys/fs/cgroup/a/b/c/memory.max":         "2000\n",
			"sys/fs/cgroup/a/b/c/memory.high":        "1500\n",
			"sys/fs/cgroup/a/b/c/memory.current":     "700\n",
			"sys/fs/cgroup/other/memory.max":         "1\n",
			"sys/fs/cgroup/a/b/c/child/memory.max":   "1\n",
			"sys/fs/cgroup/a/b/c/child/cgroup.procs": "",
		}, []Group{
			{2, "/sys/fs/cgroup/a/b/c", 1500, 700, 0},
			{2, "/sys/fs/cgroup/a", 4000, 3000, 500},
		}},
		{"v2 in a container with its own name space", map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"proc/self/mountinfo":          "31 23 0:28 / /sys/fs/cgroup ro - cgroup2 cgroup ro\n",
			"sys/fs/cgroup/memory.max":     "2000\n",
			"sys/fs/cgroup/memory.current": "10\n",
		}, []Group{{2, "/sys/fs/cgroup", 2000, 10, 0}}},
		{"v2, our group outside the name space", map[string]string{
			"proc/self/cgroup":          "0::/../sibling\n",
			"sys/fs/sibling/memory.max": "1\n",
			"proc/self/mountinfo":       "31 23 0:28 / /sys/fs/cgroup ro - cgroup2 cgroup ro\n",
			"sys/fs/cgroup/memory.max":  "2000\n",
		}, []Group{{2, "/sys/fs/cgroup", 2000, 0, 0}}},
		{"v1 nested", map[string]string{
			"proc/self/cgroup":                               "5:cpu,cpuacct:/x\n4:memory:/a/b\n1:name=systemd:/\n",
			"proc/self/mountinfo":                            "34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     noLimit,
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "4000\n",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes":   "3000\n",
			"sys/fs/cgroup/memory/a/memory.stat":             v1stat("4000"),
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": noLimit,
			"sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "1000\n",
			"sys/fs/cgroup/memory/a/b/memory.stat":           v1stat("4000"),
			"sys/fs/cgroup/cpu/x/memory.limit_in_bytes":      "1\n",
		}, []Group{
			{1, "/sys/fs/cgroup/memory/a/b", 4000, 1000, 450},
			{1, "/sys/fs/cgroup/memory/a", 4000, 3000, 450},
		}},
		{"v1 in a container that mounts only its part", map[string]string{
			"proc/self/cgroup":    "4:memory:/docker/17\n",
			"proc/self/mountinfo": "35 31 0:32 /docker/17 /sys/fs/cgroup/memory\\040here ro - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory here/memory.limit_in_bytes": noLimit,
			"sys/fs/cgroup/memory here/memory.stat":           "hierarchical_memory_limit 3000\n",
		}, []Group{{1, "/sys/fs/cgroup/memory here", 3000, 0, 0}}},
		{"v1, a mount of another part", map[string]string{
			"proc/self/cgroup":                             "4:memory:/docker/17\n",
			"proc/self/mountinfo":                          "35 31 0:32 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/7/memory.limit_in_bytes": "1\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "3000\n",
		}, []Group{{1, "/sys/fs/cgroup/memory", 3000, 0, 0}}},
		{"hybrid: v1 counts memory, v2 is there too", map[string]string{
			"proc/self/cgroup": "4:memory:/a\n0::/b\n",
			"proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "3000\n",
			"sys/fs/cgroup/unified/b/cgroup.procs":         "",
		}, []Group{{1, "/sys/fs/cgroup/memory/a", 3000, 0, 0}}},
		{"nonsense", map[string]string{
			"proc/self/cgroup":         "\n:\n0::/a\nmemory\n",
			"proc/self/mountinfo":      "\n - cgroup2\n31 - cgroup2 x rw\n31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory.max": "many\n",
		}, nil},
	}
}

func TestGroups(t *testing.T) {
	for _, test := range groupsTests() {
		t.Run(test.name, func(t *testing.T) {
			m, err := fixture(test.files).memory()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, m.Groups); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if m.Total != 16*GiB || m.Available != 8*GiB {
				t.Errorf("total %d, available %d", m.Total, m.Available)
			}
		})
	}
}

func TestMeminfoMustBeThere(t *testing.T) {
	for _, text := range []string{"", "MemTotal: 5 kB\n", "MemTotal: 5\nMemAvailable: 5 kB\n", "MemTotal: -5 kB\nMemAvailable: 5 kB\n"} {
		if m, err := fixture(map[string]string{"proc/meminfo": text}).memory(); err == nil {
			t.Errorf("%q gave %+v", text, m)
		}
	}
}

func TestAuto(t *testing.T) {
	m := Memory{Total: 64 * GiB, Available: 40 * GiB}
	if got := m.Smallest(); got != 64*GiB {
		t.Errorf("smallest %d", got)
	}
	if got, want := m.Auto(), 38*GiB; got != want {
		t.Errorf("5%% headroom: %d, want %d", got, want)
	}
	m.Groups = []Group{
		{Limit: 2 * GiB, Usage: 1 * GiB, Reclaimable: 512 * MiB},
		{Limit: 8 * GiB, Usage: 1 * GiB},
	}
	if got := m.Smallest(); got != 2*GiB {
		t.Errorf("smallest %d", got)
	}
	if got, want := m.Auto(), 2*GiB-512*MiB-256*MiB; got != want {
		t.Errorf("the tightest group: %d, want %d", got, want)
	}
	// More reclaimable than used is a race between two files: it is not more than the limit.
	m.Groups = []Group{{Limit: GiB, Usage: MiB, Reclaimable: GiB}}
	if got, want := m.Free(), GiB; got != want {
		t.Errorf("free %d, want %d", got, want)
	}
	m.Groups = []Group{{Limit: 100 * MiB, Usage: MiB}}
	if got := m.Auto(); got > 0 {
		t.Errorf("auto %d of a tiny group", got)
	}
}

func TestPeak(t *testing.T) {
	const mounts = "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n"
	tests := []struct {
		name  string
		files map[string]string
		want  int64
		ok    bool
	}{
		{"v2", map[string]string{"proc/self/cgroup": "0::/a\n", "cg/unified/a/cgroup.procs": "7\n", "cg/unified/a/memory.peak": "12\n"}, 12, true},
		{"v2 shared", map[string]string{"proc/self/cgroup": "0::/a\n", "cg/unified/a/cgroup.procs": "6\n7\n", "cg/unified/a/memory.peak": "12\n"}, 0, false},
		{"v2 of another", map[string]string{"proc/self/cgroup": "0::/a\n", "cg/unified/a/cgroup.procs": "77\n", "cg/unified/a/memory.peak": "12\n"}, 0, false},
		{"v2 with a group below", map[string]string{"proc/self/cgroup": "0::/a\n", "cg/unified/a/cgroup.procs": "7\n",
			"cg/unified/a/b/cgroup.procs": "", "cg/unified/a/memory.peak": "12\n"}, 0, false},
		{"v1", map[string]string{"proc/self/cgroup": "4:memory:/a\n", "cg/memory/a/cgroup.procs": "7\n",
			"cg/memory/a/memory.max_usage_in_bytes": "13\n"}, 13, true},
		{"v1 root", map[string]string{"proc/self/cgroup": "4:memory:/\n", "cg/memory/release_agent": "", "cg/memory/cgroup.procs": "7\n",
			"cg/memory/memory.max_usage_in_bytes": "14\n"}, 0, false},
		{"v2 root", map[string]string{"proc/self/cgroup": "0::/\n", "cg/unified/cgroup.procs": ""}, 0, false},
		{"unreadable", map[string]string{"proc/self/cgroup": "0::/a\n", "cg/unified/a/cgroup.procs": "7\n", "cg/unified/a/memory.peak": "x\n"}, 0, false},
	}
	for _, test := range tests {
		test.files["proc/self/mountinfo"] = mounts
		got, ok := fixture(test.files).peak(7)
		if got != test.want || ok != test.ok {
			t.Errorf("%s: %d %v", test.name, got, ok)
		}
	}
}

func TestProcessAndIO(t *testing.T) {
	fix := fixture(map[string]string{
		"proc/self/status": "Name:\tx\nVmPeak:\t  3060 kB\nVmHWM:\t    20 kB\nVmRSS:\t    10 kB\nRssAnon:\t 3 kB\nRssFile:\t 7 kB\nVmPTE:\t 1 kB\nThreads:\t6\n",
		"proc/self/io":     "rchar: 100\nwchar: 1\nsyscr: 5\nsyscw: 1\nread_bytes: 4096\n",
	})
	p, ok := fix.process()
	if want := (Process{10 * KiB, 20 * KiB, 3 * KiB, 7 * KiB, KiB, 6}); p != want || !ok {
		t.Errorf("process %+v %v", p, ok)
	}
	c, ok := fix.io()
	if want := (IO{100, 5, 4096}); c != want || !ok {
		t.Errorf("io %+v %v", c, ok)
	}
	if p, ok := fixture(nil).process(); ok {
		t.Errorf("a missing status file gave %+v", p)
	}
	if c, ok := fixture(nil).io(); ok {
		t.Errorf("a missing io file gave %+v", c)
	}
}

func TestCores(t *testing.T) {
	fix := fixture(map[string]string{
		"sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0,2\n",
		"sys/devices/system/cpu/cpu1/topology/thread_siblings_list": "1,3\n",
		"sys/devices/system/cpu/cpu2/topology/thread_siblings_list": "0,2\n",
		"sys/devices/system/cpu/cpu3/topology/thread_siblings_list": "1,3\n",
	})
	for _, test := range []struct {
		cpus []int
		want int
	}{{[]int{0, 1, 2, 3}, 2}, {[]int{0, 2}, 1}, {[]int{2}, 1}, {[]int{7, 8}, 2}, {nil, 0}} {
		if got := fix.cores(test.cpus); got != test.want {
			t.Errorf("%v: %d cores, want %d", test.cpus, got, test.want)
		}
	}
}

func TestThisMachine(t *testing.T) {
	m, err := ReadMemory()
	if err != nil {
		t.Skip("skipped: ", err)
	}
	if m.Total <= 0 || m.Available <= 0 || m.Available > m.Total || m.Smallest() > m.Total {
		t.Errorf("memory %+v", m)
	}
	if n := PhysicalCores(); n < 1 || n > runtime.NumCPU() {
		t.Errorf("%d cores of %d processors", n, runtime.NumCPU())
	}
	if c := ReadCPU(); c.Threads != runtime.NumCPU() || c.AVX512 && !c.AVX2 {
		t.Errorf("cpu %+v", c)
	}
	if runtime.GOOS != "linux" {
		return
	}
	p, ok := ReadProcess()
	if !ok || p.RSS <= 0 || p.RSS > p.PeakRSS || p.Threads < 1 || p.PageTables <= 0 {
		t.Errorf("process %+v %v", p, ok)
	}
	if peak, ok := CgroupPeak(); ok && peak <= 0 {
		t.Errorf("peak %d", peak)
	}
}

func TestReadBandwidth(t *testing.T) {
	buf := make([]byte, 3<<20)
	for _, threads := range []int{0, 1, 2} {
		if got := ReadBandwidth(buf, threads); got <= 0 {
			t.Errorf("%d threads: %g bytes/s", threads, got)
		}
	}
	if got := ReadBandwidth(nil, 2); got != 0 {
		t.Errorf("of nothing: %g", got)
	}
}
