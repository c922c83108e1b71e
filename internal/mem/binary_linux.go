package mem

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// TrimBinary makes the program's own file cost what is used of it. The kernel reads far ahead when
// a program starts (8 MiB at a time on some machines), and those pages are charged to our group like
// any others. All clean pages of the file leave the page cache, and from here on the kernel brings
// back single pages as they are touched. Pages that another process has mapped stay.
func TrimBinary() error {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer exe.Close()
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if line := lines.Text(); strings.HasSuffix(line, " "+path) {
			if err := trimMapping(line); err != nil {
				return err
			}
		}
	}
	return unix.Fadvise(int(exe.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// trimMapping takes a line of /proc/self/maps. What was never written is forgotten, to be read again
// from the file when it is touched; written data has no such copy and stays.
func trimMapping(line string) error {
	span, rest, _ := strings.Cut(line, " ")
	from, to, _ := strings.Cut(span, "-")
	low, err1 := strconv.ParseUint(from, 16, 64)
	high, err2 := strconv.ParseUint(to, 16, 64)
	if err := errors.Join(err1, err2); err != nil || low >= high {
		return fmt.Errorf("mapping %q: %w", line, err)
	}
	advices := []uintptr{unix.MADV_RANDOM}
	if !strings.HasPrefix(rest, "rw") {
		advices = append(advices, unix.MADV_DONTNEED)
	}
	for _, advice := range advices {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(low), uintptr(high-low), advice); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return nil
}
