// Package storyteller embeds the Storyteller model: a very small language model that tells simple
// stories, so that a fresh machine sees a model answer without a download.
package storyteller

import (
	_ "embed"

	"github.com/spillway/spillway/internal/vfs"
)

//go:embed storyteller-Q8_0.gguf
var data string

// Name is what the model is called.
const Name = "storyteller"

// Sampling that its makers suggest (the file itself says nothing), and the longest answer.
const (
	Temperature = 0.7
	TopP        = 0.9
	MaxTokens   = 300
)

// Ends are the tokens that end an answer and a text, as its generation_config.json lists them.
var Ends = []int32{2047, 2045}

// Size is the bytes of the file.
func Size() int64 { return int64(len(data)) }

// File returns the model as a GGUF file in memory: the binary's own pages.
func File() vfs.File { return vfs.Bytes(Name, data) }
