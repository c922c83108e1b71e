package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

func bypassCache(file *os.File) error {
	return control(file, func(fd uintptr) error {
		_, err := unix.FcntlInt(fd, unix.F_NOCACHE, 1)
		return err
	})
}
