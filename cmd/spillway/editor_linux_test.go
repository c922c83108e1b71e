package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A console is a pseudo-terminal: the test types on one side, the editor reads the other.
type console struct {
	t      *testing.T
	master *os.File
	tty    *os.File
	mu     sync.Mutex
	shown  bytes.Buffer
}

func openConsole(t *testing.T) *console {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("skipped: no pseudo-terminals: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, master: master, tty: tty}
	go func() {
		b := make([]byte, 1024)
		for {
			n, err := master.Read(b)
			c.mu.Lock()
			c.shown.Write(b[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { tty.Close(); master.Close() })
	return c
}

// forget what has been shown.
func (c *console) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown.Reset()
}

// A typed input, or how the reader ended.
type typed struct {
	text string
	err  error
}

func next(l *lineReader) <-chan typed {
	got := make(chan typed, 1)
	go func() {
		text, err := l.next()
		got <- typed{text, err}
	}()
	return got
}

// enter types keys at a prompt.
func (c *console) enter(l *lineReader, keys string) typed {
	c.forget()
	got := next(l)
	c.await("> ", 1)
	io.WriteString(c.master, keys)
	return <-got
}

// await waits until a text has been shown n times.
func (c *console) await(text string, n int) {
	c.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		seen := strings.Count(c.shown.String(), text)
		shown := c.shown.String()
		c.mu.Unlock()
		if seen >= n {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%q was shown %d times, want %d: %q", text, seen, n, shown)
		}
	}
}

func TestEditor(t *testing.T) {
	c := openConsole(t)
	e := newEditor(c.tty, c.tty, 1<<10, func() {})
	if e == nil {
		t.Fatal("a terminal gets no editor")
	}
	l := &lineReader{e, 1 << 12}
	dir := t.TempDir()
	writeFile(t, dir+"/chat-1.json", "")
	writeFile(t, dir+"/chat-2.json", "")
	const up, left = "\x1b[A", "\x1b[D"
	for _, test := range []struct{ keys, want string }{
		{"hello\r", "hello"},
		{"wrld" + left + left + left + "o\r", "world"},
		{"äö\x7fü\r", "äü"},
		{up + "!\r", "äü!"},
		{up + up + up + "\r", "world"},
		{"/sys\tBe kind.\r", "/system Be kind."},
		{"look: \x1b[200~one\r\ntwo\tx\x1b[201~ ok\r", "look: one\ntwo\tx ok"},
		{up + "?\r", "look: one\ntwo    x ok?"},
		{"\x1b[200~short\x1b[201~ paste\r", "short paste"},
		{"\x1b[200~\x03a\nb\x1b[201~\r", "a\nb"},
		{"\x1b[200~/etc\n/usr\x1b[201~\r", "//etc\n/usr"},
		{up + "\r", "//etc\n/usr"},
		{"/load " + dir + "/ch\t\r", "/load " + dir + "/chat-"},
		{"/load " + dir + "/chat-1\t\r", "/load " + dir + "/chat-1.json"},
		{"/system \x1b[200~a\nb\x1b[201~\r", "/system a\nb"},
	} {
		if got := c.enter(l, test.keys); got.text != test.want || got.err != nil {
			t.Errorf("%q: %q, %v, want %q", test.keys, got.text, got.err, test.want)
		}
	}
}

// Ctrl-C drops the line, and leaves at the second time; Ctrl-D is the end. The terminal is as it was.
func TestEditorEnds(t *testing.T) {
	c := openConsole(t)
	before, err := unix.IoctlGetTermios(int(c.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	e := newEditor(c.tty, c.tty, 1<<10, func() {})
	l := &lineReader{e, 1 << 12}
	got := next(l)
	c.await("> ", 1)
	io.WriteString(c.master, "abc\x03")
	c.await("leaves", 1)
	c.await("> ", 2)
	io.WriteString(c.master, "def\r")
	if r := <-got; r.text != "def" || r.err != nil {
		t.Errorf("after Ctrl-C: %q, %v", r.text, r.err)
	}
	c.forget()
	got = next(l)
	c.await("> ", 1)
	io.WriteString(c.master, "\x03")
	c.await("leaves", 1)
	c.await("> ", 2)
	io.WriteString(c.master, "\x03")
	if r := <-got; !errors.Is(r.err, errInterrupted) {
		t.Errorf("after two of them: %q, %v", r.text, r.err)
	}
	if r := c.enter(l, "\x04"); !errors.Is(r.err, io.EOF) {
		t.Errorf("after Ctrl-D: %q, %v", r.text, r.err)
	}
	// Ctrl-D while an answer comes counts at the next prompt.
	c.forget()
	io.WriteString(c.master, "\x04")
	if r := <-next(l); !errors.Is(r.err, io.EOF) {
		t.Errorf("after Ctrl-D before the prompt: %q, %v", r.text, r.err)
	}
	after, err := unix.IoctlGetTermios(int(c.tty.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal was left as %+v, was %+v (%v)", after, before, err)
	}
}
