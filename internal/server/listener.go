package server

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// A listener bounds the connections at a time: each has its memory leased before it is accepted. Where all
// are taken, answers close theirs, and one that is idle for a while makes room for the next.
type listener struct {
	net.Listener
	seats chan struct{}

	mu     sync.Mutex
	idle   map[net.Conn]time.Time // since when
	closed chan struct{}
	once   sync.Once
}

// listen opens a port whose connections have small buffers. As many as may be open may wait for that.
func listen(ctx context.Context, address string, seats int) (*listener, error) {
	config := net.ListenConfig{Control: smallBuffers, KeepAlive: 30 * time.Second}
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	shortBacklog(l.(*net.TCPListener), seats)
	return newListener(l, seats), nil
}

func newListener(l net.Listener, seats int) *listener {
	return &listener{Listener: l, seats: make(chan struct{}, seats), idle: map[net.Conn]time.Time{}, closed: make(chan struct{})}
}

// Accept is part of net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	if err := l.seat(); err != nil {
		return nil, err
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.seats
		return nil, err
	}
	return &conn{Conn: c, l: l}, nil
}

// seat waits for room for one more connection.
func (l *listener) seat() error {
	const again = 20 * time.Millisecond // others may have become idle
	for {
		select {
		case l.seats <- struct{}{}:
			return nil
		case <-l.closed:
			return net.ErrClosed
		default:
		}
		l.closeIdle()
		timer := time.NewTimer(again)
		select {
		case l.seats <- struct{}{}:
			timer.Stop()
			return nil
		case <-l.closed:
			timer.Stop()
			return net.ErrClosed
		case <-timer.C:
		}
	}
}

// Close is part of net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// becomes notes whether a connection is between two requests.
func (l *listener) becomes(c net.Conn, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if idle {
		l.idle[c] = time.Now()
	} else {
		delete(l.idle, c)
	}
}

// full reports whether a further connection would have to wait. Answers close theirs then.
func (l *listener) full() bool { return len(l.seats) == cap(l.seats) }

// rest is how long a connection was idle at least that is closed to make room: its client is hardly about to
// use it.
const rest = time.Second

// closeIdle closes the connection that was idle the longest.
func (l *listener) closeIdle() {
	l.mu.Lock()
	var oldest net.Conn
	before := time.Now().Add(-rest)
	for c, since := range l.idle {
		if since.Before(before) {
			oldest, before = c, since
		}
	}
	delete(l.idle, oldest)
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
}

// A conn gives its seat back when it is closed.
type conn struct {
	net.Conn
	l    *listener
	once sync.Once
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.l.seats })
	return err
}

// CloseWrite lets net/http linger for a client that still writes.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
