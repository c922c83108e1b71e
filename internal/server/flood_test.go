package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/servertest"
)

// fill opens connections that each begin with a text and go no further.
func fill(t *testing.T, s *servertest.Server, n int, text string) {
	t.Helper()
	for range n {
		c := dial(t, s)
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
}

// healthy asks for /health by a connection of its own.
func healthy(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(50 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprint(c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil && answer.StatusCode != 200 {
		err = errors.New(answer.Status)
	}
	return err
}

// Connections whose requests are not complete make room for those that wait, whatever their own time to read is; the
// test's client would wait for less than that.
func TestIncompleteRequestsMakeRoom(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "header": "GET /heal", "headers": "GET /health HTTP/1.1\r\nHost: localhost\r\nX-More: ",
		"body":          "POST /test/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"chunks":        "POST /test/echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"nobody's body": "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, server.Options{Connections: 4, ReadTimeout: time.Hour, IdleTimeout: time.Hour})
			fill(t, s, 6, text)
			if err := healthy(dial(t, s)); err != nil {
				t.Error(err)
			}
			if open, most, reclaimed := s.Connections(); most != 4 || open > most || reclaimed == 0 {
				t.Errorf("%d of %d connections, %d made room", open, most, reclaimed)
			}
		})
	}
}

// Who has its request stays: answers are not cut for those that wait.
func TestAnswersDoNotMakeRoom(t *testing.T) {
	s := start(t, server.Options{Connections: 1, WriteTimeout: time.Hour, DrainTimeout: time.Millisecond})
	c := dial(t, s)
	if _, err := fmt.Fprint(c, "GET /test/flood HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(c)
	if _, err := http.ReadResponse(lines, nil); err != nil {
		t.Fatal(err)
	}
	other := dial(t, s)
	if err := other.SetDeadline(time.Now().Add(2 * restOfAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Read(make([]byte, 1)); err == nil {
		t.Error("the second connection was answered")
	}
	if _, _, reclaimed := s.Connections(); reclaimed != 0 {
		t.Error("an answer made room")
	}
	if _, err := lines.ReadString('\n'); err != nil {
		t.Errorf("the answer broke: %v", err)
	}
	c.Close()
}

// restOfAll is longer than any connection is left alone that has no complete request.
const restOfAll = 3 * time.Second / 2

// Where nobody waits, a connection keeps its seat though all are taken.
func TestFullAndAlone(t *testing.T) {
	s := start(t, server.Options{Connections: 2})
	a, b := dial(t, s), dial(t, s)
	time.Sleep(restOfAll) // both are taken, and silent
	for _, c := range []net.Conn{a, b} {
		if err := healthy(c); err != nil {
			t.Error(err)
		}
	}
}

// A body that comes drop by drop has its end, too.
func TestSlowBody(t *testing.T) {
	s := start(t, server.Options{ReadTimeout: 300 * time.Millisecond})
	c := dial(t, s)
	if _, err := fmt.Fprint(c, "POST /test/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && answer.StatusCode != http.StatusBadRequest {
			err = errors.New(answer.Status)
		}
		answered <- err
	}()
	for range 1000 { // ten seconds
		select {
		case err := <-answered:
			if err != nil {
				t.Error(err)
			}
			return
		case <-time.After(10 * time.Millisecond):
			_, _ = io.WriteString(c, " ") // each well within the time of one read
		}
	}
	t.Error("the body may take for ever")
}

// A body that nobody reads must come in time as well, as the answer waits for it.
func TestUnreadBody(t *testing.T) {
	s := start(t, server.Options{ReadTimeout: 100 * time.Millisecond, Keys: []string{"k"}})
	for _, path := range []string{"/nothing", "/test/echo"} {
		c := dial(t, s)
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", path); err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode/100 != 4 {
			t.Errorf("%s: %v, %v", path, answer, err)
		}
	}
}

func TestEncodedBodies(t *testing.T) {
	s := start(t, server.Options{})
	for coding, want := range map[string]int{"gzip": 415, "identity": 200, "": 200} {
		if status, _, text := s.Do("POST", "/test/echo", `{"text":"a"}`, "Content-Encoding", coding); status != want || status == 415 && !strings.Contains(text, "gzip") {
			t.Errorf("%q: %d %s", coding, status, text)
		}
	}
}
