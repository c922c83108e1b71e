package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spillway/spillway/internal/chat"
)

// linesOnly is part of the commands that answer lines of JSON with lines of JSON: they run no model.
type linesOnly struct{ withoutModel }

// unused names the flags that mean nothing here.
func (c linesOnly) unused() []string { return append(c.withoutModel.unused(), "json") }

const maxLine = 64 << 20 // bytes of a request

// answerLines answers every line of stdin with a line, in order. A line that cannot be done is answered
// with {"error": "…"}.
func (s *session) answerLines(answer func(line []byte) (any, error)) error {
	return s.atOnce(func(ctx context.Context) error { return eachLine(ctx, s.stdin, s.stdout, answer) })
}

// objects makes of an answer to a JSON object one to a line.
func objects(answer func(*chat.Object) (any, error)) func(line []byte) (any, error) {
	return func(line []byte) (any, error) {
		request := new(chat.Object)
		if err := request.UnmarshalJSON(line); err != nil {
			return nil, plainJSON(err)
		}
		return answer(request)
	}
}

// eachLine answers every line of a stream that is not blank. Answers wait only for lines that are there
// already, so that a program on the other side can wait for each.
func eachLine(ctx context.Context, in io.Reader, out io.Writer, answer func(line []byte) (any, error)) error {
	lines := bufio.NewReader(in)
	w := bufio.NewWriter(out)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	first := true
	for last := false; !last && ctx.Err() == nil; {
		line, tooLong, err := readBounded(lines, maxLine)
		if first {
			line, first = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), false // some editors begin files so
		}
		if last = errors.Is(err, io.EOF); err != nil && !last {
			return errors.Join(fmt.Errorf("reading stdin: %w", err), w.Flush())
		}
		if tooLong || len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(replyTo(line, tooLong, answer)); err != nil {
				return fmt.Errorf("writing the answer: %w", err)
			}
		}
		if last || lines.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return fmt.Errorf("writing the answer: %w", err)
			}
		}
	}
	return nil
}

// lineError is the answer to a line that cannot be done.
type lineError struct {
	Error string `json:"error"`
}

func replyTo(line []byte, tooLong bool, answer func(line []byte) (any, error)) any {
	if tooLong {
		return lineError{fmt.Sprintf("the line is longer than %d bytes", maxLine)}
	}
	reply, err := answer(line)
	if err != nil {
		return lineError{oneLine(err.Error())}
	}
	return reply
}

// readBounded reads a line without holding more of it than most bytes. The last one may have no end; it
// comes with io.EOF.
func readBounded(r *bufio.Reader, most int) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > most; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
