package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/report"
)

const (
	// maxPrompt is how much text is read from a file or a pipe.
	maxPrompt = 8 << 20
	// freeText is the text that needs no lease: every plan has room for it in the heap.
	freeText = 32 << 10
	// readPiece is the bytes of text that are read at a time.
	readPiece = 32 << 10
)

// A promptSource is where a prompt comes from: a text, else a file, else stdin.
type promptSource struct{ text, file string }

// read returns the prompt, what comes from outside with its memory leased; an interrupt ends the wait for it.
func (p promptSource) read(ctx context.Context, s *session, lease *textLease) (string, error) {
	if p.text != "" {
		return p.text, nil
	}
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := p.load(s.stdin, lease)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (p promptSource) load(stdin *os.File, lease *textLease) (text string, err error) {
	where := "on stdin"
	if p.file != "" {
		where = "in " + visible(p.file, 200)
		text, err = readTextFile("prompt file", p.file, lease)
	} else {
		text, err = readText(stdin, lease)
	}
	if err == nil && text == "" {
		err = usagef("the prompt %s is empty", where)
	}
	return text, err
}

// readTextFile reads a file of the command line; what says which one.
func readTextFile(what, name string, lease *textLease) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	defer f.Close()
	text, err := readText(f, lease)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", what, visible(name, 200), err)
	}
	return text, nil
}

// readText reads a prompt, leasing memory for each piece before it is kept; one newline at its end,
// which shells and editors add, is not part of it.
func readText(r io.Reader, lease *textLease) (string, error) {
	var text strings.Builder
	var size int64
	piece := make([]byte, readPiece)
	for {
		n, err := io.ReadFull(r, piece)
		size += int64(n) + extraBytes(bytes.Count(piece[:n], []byte(" ")))
		if text.Len()+n > maxPrompt {
			return "", errLongPrompt
		}
		if full := lease.grow(size); full != nil {
			return "", tooLarge(r, piece, int64(text.Len()+n), size, lease, full)
		}
		text.Write(piece[:n])
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return strings.TrimSuffix(strings.TrimSuffix(text.String(), "\n"), "\r"), nil
		case err != nil:
			return "", fmt.Errorf("reading the prompt: %w", err)
		}
	}
}

var errLongPrompt = fmt.Errorf("the prompt is longer than %d MiB", maxPrompt>>20)

// tooLarge reads the rest of a prompt for which there is no room, to say how much would do.
func tooLarge(r io.Reader, piece []byte, length, size int64, lease *textLease, full error) error {
	for length <= maxPrompt {
		n, err := io.ReadFull(r, piece)
		length += int64(n)
		size += int64(n) + extraBytes(bytes.Count(piece[:n], []byte(" ")))
		if err != nil {
			return enough(full, lease.cost(size), "a prompt of "+report.Bytes(length))
		}
	}
	return errLongPrompt
}

// textBytes is the length of a text as tokenizers see it: some write a space with three bytes.
func textBytes(s string) int64 { return int64(len(s)) + extraBytes(strings.Count(s, " ")) }

func extraBytes(spaces int) int64 { return 2 * int64(spaces) }

// A textLease is the memory that a prompt's texts may take until they are ids, leased as they come.
type textLease struct {
	rt       *spillway.Runtime
	covered  int64 // bytes of text
	releases []func()
}

func newTextLease(rt *spillway.Runtime) *textLease { return &textLease{rt: rt, covered: freeText} }

// cost is what must be leased to cover n bytes of text.
func (l *textLease) cost(n int64) int64 { return max(n-l.covered, 0) * spillway.PromptCost }

// grow covers n bytes of text in all.
func (l *textLease) grow(n int64) (err error) {
	if n <= l.covered {
		return nil
	}
	var release func()
	for _, ahead := range []int64{n, n / 4, 0} { // a lease costs time, so that one covers what may come next
		if release, err = l.rt.Reserve(l.cost(n+ahead), "the prompt"); err == nil {
			l.releases, l.covered = append(l.releases, release), n+ahead
			return nil
		}
	}
	return err
}

// growFor covers some texts together.
func (l *textLease) growFor(texts ...string) error {
	var length, size int64
	for _, t := range texts {
		length += int64(len(t))
		size += textBytes(t)
	}
	if err := l.grow(size); err != nil {
		return enough(err, l.cost(size), "a prompt of "+report.Bytes(length))
	}
	return nil
}

// release gives the memory back, once the texts are ids.
func (l *textLease) release() {
	for _, f := range l.releases {
		f()
	}
	l.releases, l.covered = nil, freeText
}

// A noRoomError is a budget.NoRoomError for people.
type noRoomError struct {
	text  string
	cause error
}

func (e *noRoomError) Error() string { return e.text }
func (e *noRoomError) Unwrap() error { return e.cause }

// enough says in place of a ledger's refusal how much memory would do for n bytes more.
func enough(err error, n int64, what string) error {
	var full *budget.NoRoomError
	if !errors.As(err, &full) {
		return err
	}
	const moves = 1 << 20 // of the heap between two looks
	least := full.Limit - full.Free + n + moves
	return &noRoomError{fmt.Sprintf("%s is too little memory for %s: it needs at least %s", report.Bytes(full.Limit), what, report.CapBytes(least)), err}
}
