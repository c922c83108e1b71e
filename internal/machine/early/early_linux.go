// Package early gives back the program's own file in the page cache before anything else of the program runs.
//
// The kernel reads an executable in windows of the drive's read-ahead (up to 8 MiB), so that starting it costs
// nearly the whole file. Here all but what the Go runtime holds is given back before other packages fill their
// tables, and from now on pages come one by one. machine.TrimBinary does it again when a runtime begins.
//
// It imports syscall alone: then it is initialized before packages that cost memory.
package early

import "syscall"

const (
	madvRandom   = 1
	madvDontNeed = 4
	madvDontDump = 16
	fadvDontNeed = 4

	// piece is how much of the code the kernel may read for one page of it.
	piece = 32 << 10

	lowest = 1 << 32 // programs that cannot be moved lie below
)

func init() {
	var maps [4096]byte
	n := read("/proc/self/maps", maps[:])
	parts(maps[:n], func(start, end uintptr, writable, code bool) {
		syscall.RawSyscall(syscall.SYS_MADVISE, start, end-start, madvRandom)
		if !writable {
			syscall.RawSyscall(syscall.SYS_MADVISE, start, end-start, madvDontNeed)
		}
		if code {
			cut(start, end)
		}
	})
	if fd, err := syscall.Open("/proc/self/exe", syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err == nil {
		syscall.RawSyscall6(syscall.SYS_FADVISE64, uintptr(fd), 0, 0, fadvDontNeed, 0, 0)
		syscall.Close(fd)
	}
}

// cut makes many mappings of one of code. From Linux 6.16 on the kernel ignores madvRandom there and reads up to the
// mapping's end for every page that is missing. Neighbours that differ in a flag stay apart; that one says what a
// core dump leaves out, and code is left out anyway.
func cut(start, end uintptr) {
	for ; start < end; start += 2 * piece {
		syscall.RawSyscall(syscall.SYS_MADVISE, start, min(piece, end-start), madvDontDump)
	}
}

// read returns how much of a file it has read; 0 where it cannot: this is a favour, not a duty.
func read(name string, buf []byte) int {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer syscall.Close(fd)
	n, _ := syscall.Read(fd, buf)
	return max(n, 0)
}

// parts calls f for the leading lines of /proc/self/maps that map a file, the program's, up to its variables:
// "start-end r-xp offset device inode path". A program that can lie anywhere (PIE) is left alone: among its
// read-only parts are tables that the loader has relocated, which are in no file. It lies high.
func parts(maps []byte, f func(start, end uintptr, writable, code bool)) {
	for len(maps) > 0 {
		start, rest := hex(maps)
		if len(rest) == 0 || rest[0] != '-' {
			return
		}
		end, rest := hex(rest[1:])
		if len(rest) < 6 || end <= start || rest[4] != 'p' {
			return
		}
		line, isFile := 0, false
		for line < len(rest) && rest[line] != '\n' {
			isFile = isFile || rest[line] == '/'
			line++
		}
		if line == len(rest) || !isFile || uint64(end) > lowest {
			return
		}
		writable := rest[2] == 'w'
		f(start, end, writable, rest[3] == 'x')
		if writable {
			return
		}
		maps = rest[line+1:]
	}
}

// hex reads a hexadecimal number.
func hex(b []byte) (n uintptr, rest []byte) {
	for i, c := range b {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | uintptr(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | uintptr(c-'a'+10)
		default:
			return n, b[i:]
		}
	}
	return n, nil
}
