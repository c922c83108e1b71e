//go:build unix

package server

import (
	"errors"
	"net"
	"syscall"
)

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
