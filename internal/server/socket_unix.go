//go:build unix

package server

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// isTaken reports whether a port could not be opened because another program has it.
func isTaken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// smallBuffers caps the buffers of a socket, and of the connections that it accepts.
func smallBuffers(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = errors.Join(
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, socketBytes),
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, socketBytes))
	})
	return errors.Join(err, failed)
}

// shortBacklog shortens the queue of connections that wait to be accepted. Where that fails it stays as it
// was.
func shortBacklog(l *net.TCPListener, n int) {
	if c, err := l.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), n) })
	}
}

// someoneWaits reports whether a connection waits to be accepted; true where nobody knows.
func someoneWaits(l *net.TCPListener) bool {
	c, err := l.SyscallConn()
	if err != nil {
		return true
	}
	waits := true
	_ = c.Control(func(fd uintptr) {
		list := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(list, 0)
		for errors.Is(err, syscall.EINTR) { // by the scheduler's signals
			n, err = unix.Poll(list, 0)
		}
		waits = err != nil || n > 0
	})
	return waits
}
