// Command grammars answers what a grammar of a JSON Schema allows, one JSON object a line, for bench/grammars.py,
// which asks other engines the same.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

type request struct {
	Op     string
	Dir    string // load: of the tokenizer
	End    string // load: the token that ends an answer
	Slot   int    // which of two schemas
	Schema string
	ID     int32
	IDs    []int32
	Text   []byte
	Seed   uint64
	Soft   int // write: from so many bytes on it goes for the end
}

type answer struct {
	Error  string   `json:",omitempty"`
	Tokens [][]byte `json:",omitempty"` // load: their bytes, none for those that are no text
	End    int32    `json:",omitempty"`
	Mask   []byte   `json:",omitempty"`
	At     []int    `json:",omitempty"` // the first byte that is refused; the length where all may come
	Ends   bool     // the text may end there
	Text   []byte   `json:",omitempty"`
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "grammars:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	w := bufio.NewWriter(out)
	decode, encode := json.NewDecoder(in), json.NewEncoder(w)
	var s session
	for {
		var q request
		switch err := decode.Decode(&q); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		var a answer
		if err := s.answer(&q, &a); err != nil {
			a.Error = err.Error()
		}
		if err := encode.Encode(&a); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}
