package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Open recognises a trace: one of ours, or JSON lines, which may be compressed by gzip.
func Open(r io.ReadSeeker) (Source, error) {
	var start [256]byte
	n, err := io.ReadFull(r, start[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	head := bytes.TrimLeft(start[:n], " \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return newLines(r, true)
	case bytes.HasPrefix(head, []byte("{")) && !bytes.Contains(head, []byte(`"`+formatName+`"`)):
		return newLines(r, false)
	}
	return NewReader(r)
}

// lines reads JSON lines, one for each token: {"conversation": 0, "position": 0, "phase": "prefill", "experts": [[26, 23]]}, the experts
// of each layer, best first. The tokens of a prompt that follow each other are one step, every other token is one of its own.
type lines struct {
	header   Header
	measured bool // the header is final
	scan     *bufio.Scanner
	line     int64
	ahead    token // read, but not part of the step yet
	step     []token
	number   int // of the step
	layer    int
	ids      []uint16
}

type token struct {
	Conversation int64      `json:"conversation"`
	Phase        string     `json:"phase"`
	Experts      [][]uint16 `json:"experts"`
}

const maxLine = 256 << 10 // bytes

// newLines reads the file twice: first for its shape, which the lines do not say.
func newLines(r io.ReadSeeker, packed bool) (*lines, error) {
	t := &lines{}
	if err := t.rewind(r, packed); err != nil {
		return nil, err
	}
	for {
		_, err := t.read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if t.header.Layers == 0 {
		return nil, &FormatError{At: t.line, What: "there is no token", Line: true}
	}
	t.header.Format, t.header.Version = formatName, version
	if err := t.header.check(); err != nil {
		return nil, err
	}
	if err := t.rewind(r, packed); err != nil {
		return nil, err
	}
	t.measured = true
	t.number, t.layer = -1, t.header.Layers
	var err error
	t.ahead, err = t.read()
	return t, err
}

func (t *lines) rewind(r io.ReadSeeker, packed bool) error {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var in io.Reader = r
	if packed {
		z, err := gzip.NewReader(r)
		if err != nil {
			return &FormatError{What: "gzip: " + err.Error()}
		}
		in = z
	}
	t.scan, t.line = bufio.NewScanner(in), 0
	t.scan.Buffer(nil, maxLine)
	return nil
}

// read returns the next token.
func (t *lines) read() (token, error) {
	var x token
	if !t.scan.Scan() {
		if err := t.scan.Err(); err != nil {
			return x, t.unread(err)
		}
		return x, io.EOF
	}
	t.line++
	if err := json.Unmarshal(t.scan.Bytes(), &x); err != nil {
		return x, t.wrong(err)
	}
	if x.Phase != "prefill" && x.Phase != "decode" {
		return x, t.bad("the phase is %.20q, not prefill or decode", x.Phase)
	}
	return x, t.measure(x)
}

// measure extends the shape by a token, or once it is known checks the token against it.
func (t *lines) measure(x token) error {
	h := &t.header
	if h.Layers == 0 && len(x.Experts) > 0 {
		h.Layers, h.Used = len(x.Experts), len(x.Experts[0])
	}
	if h.Layers == 0 || len(x.Experts) != h.Layers {
		return t.bad("experts of %d layers, not %d", len(x.Experts), h.Layers)
	}
	for _, ids := range x.Experts {
		if len(ids) != h.Used || h.Used == 0 {
			return t.bad("%d experts of a layer, not %d", len(ids), h.Used)
		}
		for i, id := range ids {
			if slices.Contains(ids[:i], id) {
				return t.bad("expert %d twice in a layer", id)
			}
			if t.measured && int(id) >= h.Experts {
				return t.bad("the file has changed")
			}
			h.Experts = max(h.Experts, int(id)+1)
		}
	}
	return nil
}

// Header says of the model only what the lines tell; experts that nobody chose behind the last one are not counted.
func (t *lines) Header() Header { return t.header }

// Next returns the next layer of the next step.
func (t *lines) Next() (Record, error) {
	if t.layer == t.header.Layers {
		if err := t.gather(); err != nil {
			return Record{}, err
		}
	}
	r := Record{Step: t.number, Layer: t.layer}
	t.ids = t.ids[:0]
	for _, x := range t.step {
		t.ids = append(t.ids, x.Experts[t.layer]...)
	}
	if r.Experts = t.ids; t.step[0].Phase == "prefill" {
		r.Prefill = len(t.step)
	} else {
		r.Decode = len(t.step)
	}
	t.layer++
	return r, nil
}

// gather collects the tokens of a step.
func (t *lines) gather() error {
	if t.ahead.Experts == nil {
		return io.EOF
	}
	t.step = append(t.step[:0], t.ahead)
	for {
		var err error
		if t.ahead, err = t.read(); err == io.EOF {
			t.ahead = token{}
		} else if err != nil {
			return err
		}
		first, next := t.step[0], t.ahead
		if next.Experts == nil || first.Phase != "prefill" || next.Phase != "prefill" || next.Conversation != first.Conversation {
			break
		}
		if t.step = append(t.step, next); len(t.step) >= maxRows || len(t.step)*t.header.Layers*t.header.Used > maxIDs {
			return t.bad("a prompt of %d tokens", len(t.step))
		}
	}
	t.number++
	t.layer = 0
	return nil
}

// wrong says why a line is no token.
func (t *lines) wrong(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && strings.HasPrefix(kind.Field, "experts"):
		return t.bad("experts must be a list of lists of whole numbers")
	case errors.As(err, &kind) && kind.Field != "":
		return t.bad("%q cannot be a %s", kind.Field, kind.Value)
	case errors.As(err, &syntax):
		return t.bad("not valid JSON at byte %d of the line: %w", syntax.Offset, err)
	}
	return t.bad("the line is no token")
}

// unread says why there is no next line.
func (t *lines) unread(err error) error {
	t.line++
	if errors.Is(err, bufio.ErrTooLong) {
		return t.bad("the line is longer than %d bytes", maxLine)
	}
	return t.bad("%w", err)
}

func (t *lines) bad(format string, args ...any) error {
	return &FormatError{At: t.line, What: fmt.Errorf(format, args...).Error(), Line: true}
}
