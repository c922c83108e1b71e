//go:build !unix

package server

import (
	"net"
	"syscall"
)

// smallBuffers leaves sockets as the system makes them.
func smallBuffers(_, _ string, _ syscall.RawConn) error { return nil }

func shortBacklog(*net.TCPListener, int) {}

// someoneWaits is not known here.
func someoneWaits(*net.TCPListener) bool { return true }
