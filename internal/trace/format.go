// Package trace keeps which experts a run chose, and learns from it: a compact file that any run can
// write as it goes, replay of cache policies and sizes over it with Belady's optimum beside, and a report
// as one page of HTML.
//
// # File format, version 1
//
// One line of JSON, the Header, then records:
//
//	step   0x01                                          a forward pass begins
//	visit  0x02 layer decode prefill id…                 one of its layers; rising layers in a step
//	end    0x00 steps visits crc                         nothing follows
//
// layer counts those that have experts, from 0. decode and prefill are how many rows passed: of running answers, and of prompts;
// Header.Used ids for each row follow, best first, answers before prompts. Numbers are unsigned LEB128 (Go's uvarint), ids one
// byte if there are at most 256 experts, else two, low byte first. crc is the IEEE CRC-32 of all bytes before it, 4
// bytes, low byte first.
package trace

import (
	"encoding/json"
	"fmt"
)

const (
	formatName = "spillway-trace"
	version    = 1

	recordEnd   = 0
	recordStep  = 1
	recordVisit = 2

	maxHeader  = 64 << 10 // bytes
	maxRows    = 1 << 16  // that pass one layer in one step, less one
	maxIDs     = 1 << 20  // that they choose
	maxExperts = 1 << 16  // of a layer
	maxAll     = 1 << 17  // layers × experts; the largest released model has 25,000
)

// Header says of which model a trace is.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Model   Model  `json:"model"`
	Layers  int    `json:"layers"`  // that have experts
	Experts int    `json:"experts"` // of a layer
	Used    int    `json:"used"`    // by each row
	// ExpertBytes is the size of one expert by layer; nil if it isn't known.
	ExpertBytes []int64 `json:"expert_bytes,omitempty"`
}

// Model says which model it was.
type Model struct {
	Name   string `json:"name,omitempty"`
	Family string `json:"family,omitempty"`
	Digest string `json:"digest,omitempty"` // of its identity
}

// A FormatError is a damaged trace, or one of another version.
type FormatError struct {
	At   int64 // byte of the trace's file, or its line if that has lines; 0: all of it
	What string
	Line bool // At is a line
}

func (e *FormatError) Error() string {
	switch {
	case e.At == 0:
		return e.What
	case e.Line:
		return fmt.Sprintf("%s, in line %d", e.What, e.At)
	}
	return fmt.Sprintf("%s, at byte %d", e.What, e.At)
}

func (h *Header) check() error {
	bad := func(format string, args ...any) error { return &FormatError{What: fmt.Sprintf(format, args...)} }
	switch {
	case h.Format != formatName:
		return bad("this is no trace of spillway")
	case h.Version != version:
		return bad("the trace has version %d, this program reads %d", h.Version, version)
	case h.Layers < 1 || h.Experts < 1 || h.Experts > maxExperts || h.Layers > maxAll/h.Experts:
		return bad("%d layers with %d experts are more or fewer than a model can have", h.Layers, h.Experts)
	case h.Used < 1 || h.Used > h.Experts:
		return bad("%d of %d experts cannot be used by a row", h.Used, h.Experts)
	case h.ExpertBytes != nil && len(h.ExpertBytes) != h.Layers:
		return bad("sizes of experts for %d layers, there are %d", len(h.ExpertBytes), h.Layers)
	}
	for _, n := range h.ExpertBytes {
		if n < 1 || n > 1<<40 {
			return bad("an expert of %d bytes", n)
		}
	}
	return nil
}

// line is the header as it stands in the file.
func (h Header) line() ([]byte, error) {
	h.Format, h.Version = formatName, version
	if err := h.check(); err != nil {
		return nil, err
	}
	line, err := json.Marshal(h)
	if err == nil && len(line) >= maxHeader {
		err = fmt.Errorf("the header of a trace has %d bytes, at most %d fit", len(line), maxHeader)
	}
	return append(line, '\n'), err
}

// wide says that ids take two bytes.
func (h *Header) wide() bool { return h.Experts > 256 }

// Record is one step's pass through one layer.
type Record struct {
	Step            int // from 0
	Layer           int
	Decode, Prefill int      // rows of running answers, and of prompts
	Experts         []uint16 // Header.Used for each row, best first; valid until the next record
}

// A Source gives the records of a trace in order, io.EOF after the last one.
type Source interface {
	Header() Header
	Next() (Record, error)
}
