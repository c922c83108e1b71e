package machine

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mapping is a part of the program's own file in memory.
type mapping struct {
	start, end uintptr
	writable   bool
	own        int64 // bytes that were written here, in memory or in swap, and are in no file
}

// ownMappings lists where the program's own file is mapped.
func ownMappings() ([]mapping, error) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	defer smaps.Close()
	return parseMappings(smaps, exe)
}

// parseMappings reads /proc/self/smaps: a line for each mapping, followed by its figures.
func parseMappings(smaps io.Reader, exe string) ([]mapping, error) {
	var all []mapping
	inside := false
	s := bufio.NewScanner(smaps)
	for s.Scan() {
		line := s.Text()
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			var m mapping
			if m, inside = parseMapping(fields); inside {
				inside = strings.HasSuffix(line, " "+exe)
			}
			if inside {
				all = append(all, m)
			}
		case inside && len(fields) == 3 && (fields[0] == "Anonymous:" || fields[0] == "Swap:"):
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return nil, err
			}
			all[len(all)-1].own += kib << 10
		}
	}
	return all, s.Err()
}

// parseMapping reads the first line of a mapping: "start-end perms offset …".
func parseMapping(fields []string) (m mapping, ok bool) {
	from, to, _ := strings.Cut(fields[0], "-")
	start, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if err1 != nil || err2 != nil || end <= start {
		return m, false
	}
	return mapping{start: uintptr(start), end: uintptr(end), writable: strings.Contains(fields[1], "w")}, true
}

// BinaryBytes is the size of the program's own file as it is mapped: the most page cache that
// running it can cause.
func BinaryBytes() int64 {
	all, err := ownMappings()
	if err != nil {
		return 0
	}
	var n int64
	for _, m := range all {
		n += int64(m.end - m.start)
	}
	return n
}

// BinaryFileBytes is the size of the program's own file. The kernel may read all of it when it starts.
func BinaryFileBytes() int64 {
	info, err := os.Stat("/proc/self/exe")
	if err != nil {
		return 0
	}
	return info.Size()
}

// UntrimBinary lets the kernel read ahead in the program's own file again, for those who read much of
// it in order.
func UntrimBinary() error {
	all, err := ownMappings()
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := advise(m, unix.MADV_NORMAL); err != nil {
			return err
		}
	}
	return nil
}

func advise(m mapping, advice uintptr) error {
	if _, _, e := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, advice); e != 0 {
		return e
	}
	return nil
}

// TrimBinary gives back the page cache of the program's own file: code that has run and will not run
// again, and what was read ahead around it. What is still needed comes back page by page. Pages that
// other processes use stay, at no cost to us.
func TrimBinary() error {
	all, err := ownMappings()
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.writable || m.own > 0 {
			continue // holds variables, or tables that the loader relocated and then made read-only
		}
		if err := errors.Join(advise(m, unix.MADV_RANDOM), advise(m, unix.MADV_DONTNEED)); err != nil {
			return err
		}
	}
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	return errors.Join(unix.Fadvise(int(exe.Fd()), 0, 0, unix.FADV_DONTNEED), exe.Close())
}
