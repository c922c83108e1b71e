//go:build !unix

package server

import (
	"errors"
	"net"
	"syscall"
)

// addressInUse is Windows' WSAEADDRINUSE.
const addressInUse = syscall.Errno(10048)

// isTaken reports whether a port could not be opened because another program has it.
func isTaken(err error) bool { return errors.Is(err, addressInUse) }

// smallBuffers leaves sockets as the system makes them.
func smallBuffers(_, _ string, _ syscall.RawConn) error { return nil }

func shortBacklog(*net.TCPListener, int) {}

// someoneWaits is not known here.
func someoneWaits(*net.TCPListener) bool { return true }
