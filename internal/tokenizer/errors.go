package tokenizer

import (
	"fmt"

	"github.com/spillway/spillway/internal/checkpoint/container"
)

// FormatError says that a tokenizer's file is damaged or not supported.
type FormatError = container.Error

// UnsupportedError says that a tokenizer is of a kind that this package does not know. It is a
// FormatError too, as errors.As sees it.
type UnsupportedError struct {
	Part string // which stage: "model", "normalizer", "pre-tokenizer", "decoder", "post-processor"
	Kind string // its name in the file
}

func (e *UnsupportedError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the FormatError.
func (e *UnsupportedError) Unwrap() error {
	return &FormatError{Where: "tokenizer", What: fmt.Sprintf("%s %s is not supported", e.Part, container.Name(e.Kind)),
		Hint: "BPE, Unigram, WordPiece and WordLevel are, from tokenizer.json, GGUF, tekken.json, SentencePiece and vocab.txt"}
}

func unsupported(part, kind string) error { return &UnsupportedError{Part: part, Kind: kind} }

func formatError(format string, args ...any) error {
	return &FormatError{Where: "tokenizer", What: fmt.Sprintf(format, args...)}
}
