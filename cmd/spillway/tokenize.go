package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spillway/spillway/internal/tokenizer"
	"github.com/spillway/spillway/internal/vfs"
)

type tokenizeCommand struct {
	linesOnly
	Model string `arg:"" help:"GGUF file, folder in Hugging Face layout, or known name; a folder or file with only a tokenizer will do."`
}

func (*tokenizeCommand) Help() string {
	return "Reads JSON objects from stdin, one a line, and writes one line for each, in order:\n\n" +
		"  {\"text\": \"…\", \"add_special\": true, \"parse_special\": true} gives {\"ids\": [1]}; \"bytes\" in place of \"text\" is base64.\n\n" +
		"  {\"ids\": [1], \"skip_special\": false} gives {\"text\": \"…\"}, with U+FFFD for what is not UTF-8; with \"bytes\": true it gives " +
		"{\"bytes\": \"…\"}, base64.\n\n" +
		"  {\"ids\": [1], \"stream\": true} gives {\"pieces\": [\"…\"], \"end\": \"…\"}: what may be shown after each id, and at the end.\n\n" +
		"What is left out is false. A line that cannot be done gives {\"error\": \"…\"} and does not end the command.\n\nExample:\n\n" +
		"  echo '{\"text\": \"Hello\", \"add_special\": true}' | spillway tokenize model.gguf"
}

func (c *tokenizeCommand) run(s *session) error {
	t, err := s.tokenizer(c.Model)
	if err != nil {
		return err
	}
	return s.answerLines(func(line []byte) (any, error) { return tokenizeLine(t, line) })
}

// tokenizer reads the tokenizer of a MODEL argument.
func (s *session) tokenizer(model string) (*tokenizer.Tokenizer, error) {
	if _, err := vfs.OS().Stat(model); err == nil {
		return tokenizer.LoadPath(vfs.OS(), model, nil)
	}
	cat, err := s.catalog(model)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Load(cat, nil)
	return t, errors.Join(err, cat.Close())
}

// tokenizeRequest is a line for tokenize.
type tokenizeRequest struct {
	Text         *string         `json:"text"`
	Bytes        json.RawMessage `json:"bytes"` // base64 in place of a text; true: to be given with ids
	AddSpecial   bool            `json:"add_special"`
	ParseSpecial bool            `json:"parse_special"`
	IDs          *[]int32        `json:"ids"`
	SkipSpecial  bool            `json:"skip_special"`
	Stream       bool            `json:"stream"`
}

// What tokenize answers.
type (
	idsReply struct {
		IDs []int32 `json:"ids"`
	}
	textReply struct {
		Text string `json:"text"`
	}
	bytesReply struct {
		Bytes []byte `json:"bytes"`
	}
	piecesReply struct {
		Pieces []string `json:"pieces"`
		End    string   `json:"end"`
	}
)

func tokenizeLine(t *tokenizer.Tokenizer, line []byte) (any, error) {
	var r tokenizeRequest
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("the line is no request: %w", requestError(err))
	}
	if r.IDs != nil {
		if r.Text != nil {
			return nil, errors.New(`the request has both "text" and "ids"; give one of them`)
		}
		return decodeIDs(t, &r)
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	ids, err := t.Encode([]int32{}, text, tokenizer.Options{AddSpecial: r.AddSpecial, ParseSpecial: r.ParseSpecial})
	return idsReply{ids}, err
}

// requestError says what is wrong with a line in the words of the help text.
func requestError(err error) error {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) || kind.Field == "" {
		return plainJSON(err)
	}
	field, _, _ := strings.Cut(kind.Field, ".")
	switch field {
	case "ids":
		return fmt.Errorf("ids must be a list of whole numbers from 0 to %d", math.MaxInt32)
	case "text":
		return errors.New("text must be a text")
	}
	return fmt.Errorf("%s must be true or false", field)
}

// text returns the text of a request, given as it is or as base64.
func (r *tokenizeRequest) text() (string, error) {
	switch {
	case r.Text != nil && len(r.Bytes) > 0:
		return "", errors.New(`the request has both "text" and "bytes"; give one of them`)
	case r.Text != nil:
		return *r.Text, nil
	case len(r.Bytes) == 0:
		return "", errors.New(`the request has neither "text" nor "bytes" nor "ids"`)
	}
	var b []byte
	if err := json.Unmarshal(r.Bytes, &b); err != nil {
		return "", fmt.Errorf(`"bytes" is not base64: %w`, plainJSON(err))
	}
	return string(b), nil
}

func decodeIDs(t *tokenizer.Tokenizer, r *tokenizeRequest) (any, error) {
	exact := false
	if len(r.Bytes) > 0 {
		if err := json.Unmarshal(r.Bytes, &exact); err != nil {
			return nil, errors.New(`"bytes" with "ids" is true or false`)
		}
	}
	switch {
	case r.Stream && exact:
		return nil, errors.New(`"stream" gives text; it goes without "bytes"`)
	case r.Stream:
		return streamIDs(t, r)
	case exact:
		b, err := t.Decode(*r.IDs, r.SkipSpecial)
		return bytesReply{b}, err
	}
	text, err := t.DecodeText(*r.IDs, r.SkipSpecial)
	return textReply{text}, err
}

func streamIDs(t *tokenizer.Tokenizer, r *tokenizeRequest) (any, error) {
	d := t.NewDecoder(r.SkipSpecial)
	reply := piecesReply{Pieces: make([]string, 0, len(*r.IDs))}
	for _, id := range *r.IDs {
		piece, err := d.Push(id)
		if err != nil {
			return nil, err
		}
		reply.Pieces = append(reply.Pieces, piece)
	}
	reply.End = d.Flush()
	return reply, nil
}
