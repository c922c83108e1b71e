package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// A listener bounds the connections at a time: each has its memory leased before it is accepted. Where all
// are taken, answers close theirs, and while somebody waits, one that has no complete request makes room for
// the next.
type listener struct {
	net.Listener
	seats chan struct{}
	tls   bool
	waits func() bool // somebody waits for a seat

	mu        sync.Mutex
	open      map[net.Conn]*visit
	reclaimed int64
	closed    chan struct{}
	once      sync.Once
}

// A visit is what a connection does.
type visit struct {
	phase phase
	since time.Time
}

type phase uint8

const (
	phaseHeader phase = iota // its first request, or the header of one, is not complete
	phaseIdle                // it is between two requests
	phaseBody                // a body is not complete
	phaseAnswer              // it has its request; it stays
)

// How long a connection stays in a phase at least before it is closed to make room for one that waits.
const (
	restHeader = 250 * time.Millisecond // headers come with the connection
	restTLS    = time.Second            // or after some turns of a handshake
	restIdle   = time.Second            // its client is hardly about to use it
	restBody   = 5 * time.Second
)

// rest is how long a connection may be in a phase while others wait; 0: as long as it likes.
func (l *listener) rest(p phase) time.Duration {
	switch p {
	case phaseHeader:
		if l.tls {
			return restTLS
		}
		return restHeader
	case phaseIdle:
		return restIdle
	case phaseBody:
		return restBody
	}
	return 0
}

// listen opens a port whose connections have small buffers. As many as may be open may wait for that.
func listen(ctx context.Context, address string, seats int) (*listener, error) {
	config := net.ListenConfig{Control: smallBuffers, KeepAlive: 30 * time.Second}
	l, err := config.Listen(ctx, "tcp", address)
	if isTaken(err) {
		return nil, fmt.Errorf("listening on %s: another program uses this port; choose one by --port, or let the system choose by --port 0: %w", address, cause(err))
	}
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, cause(err))
	}
	port := l.(*net.TCPListener)
	shortBacklog(port, seats)
	return &listener{
		Listener: l, seats: make(chan struct{}, seats), waits: func() bool { return someoneWaits(port) },
		open: map[net.Conn]*visit{}, closed: make(chan struct{}),
	}, nil
}

// cause is an error of the network without the address that it repeats.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
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
	const again = 20 * time.Millisecond // others may have come to rest
	for {
		select {
		case l.seats <- struct{}{}:
			return nil
		case <-l.closed:
			return net.ErrClosed
		default:
		}
		if l.waits() {
			l.reclaim()
		}
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

// becomes notes what net/http says of a connection.
func (l *listener) becomes(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew, http.StateActive: // the first byte of a request has come
		l.enter(c, phaseHeader)
	case http.StateIdle:
		l.enter(c, phaseIdle)
	default:
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, c)
	}
}

// enter notes a connection's phase. What is between accepting and closing is known; others are not.
func (l *listener) enter(c net.Conn, p phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.open[c]
	if v == nil {
		v = &visit{since: time.Now()}
		l.open[c] = v
	}
	if v.phase != p {
		v.phase, v.since = p, time.Now()
	}
}

// full reports whether a further connection would have to wait. Answers close theirs then.
func (l *listener) full() bool { return len(l.seats) == cap(l.seats) }

// counts are the connections that are open, those that may be, and those that had to make room.
func (l *listener) counts() (open, most int, reclaimed int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open), cap(l.seats), l.reclaimed
}

// reclaim closes the connection that has been without a complete request for the longest, beyond what its phase allows.
func (l *listener) reclaim() {
	l.mu.Lock()
	var oldest net.Conn
	longest := time.Duration(0)
	for c, v := range l.open {
		rest := l.rest(v.phase)
		if over := time.Since(v.since) - rest; rest > 0 && over > longest {
			oldest, longest = c, over
		}
	}
	if oldest != nil {
		delete(l.open, oldest)
		l.reclaimed++
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = plain(oldest).Close()
	}
}

// plain is a connection without TLS, whose end waits for nobody.
func plain(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
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
