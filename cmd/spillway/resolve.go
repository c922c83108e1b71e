package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/vfs"
)

// embeddedName is the known name of the model that is part of the program.
const embeddedName = "storyteller"

// errNoModel says that an argument names no model; the caller says what would.
var errNoModel = errors.New("names no model")

// A modelPath is where a model lies; the zero value is the embedded one.
type modelPath string

// resolve finds the model of an argument that must be one.
func (s *session) resolve(name string) (modelPath, error) {
	path, err := s.find(name)
	if errors.Is(err, errNoModel) {
		return "", fmt.Errorf("%.200q is neither a file nor a folder nor a known name (%s, or a name from the Hugging Face cache, LM Studio or Ollama)", name, embeddedName)
	}
	return path, err
}

// find returns the model that name names: a file, a folder, the embedded model, or a model that
// another tool has fetched; errNoModel if it is none of these.
func (s *session) find(name string) (modelPath, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return modelIn(name)
	case err == nil:
		return modelPath(name), nil
	case !errors.Is(err, fs.ErrNotExist) && looksLikePath(name):
		return "", err
	case strings.EqualFold(name, embeddedName):
		return "", nil
	case !nameForm().MatchString(name) || strings.Contains(name, ".."):
		return "", errNoModel
	}
	for _, place := range []func(string) (string, bool){s.huggingFace, s.lmStudio} {
		if dir, ok := place(name); ok {
			return modelIn(dir)
		}
	}
	if path, ok := s.ollama(name); ok {
		return modelPath(path), nil
	}
	return "", errNoModel
}

// nameForm is name, owner/name, or either with :tag.
var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?(:[A-Za-z0-9._-]+)?$`)
})

// looksLikePath tells a mistyped path from a prompt.
func looksLikePath(s string) bool {
	for _, end := range []string{".gguf", ".safetensors", ".json"} {
		if strings.HasSuffix(strings.ToLower(s), end) {
			return true
		}
	}
	for _, start := range []string{"/", "./", "../", "~/", `.\`, `..\`} {
		if strings.HasPrefix(s, start) {
			return true
		}
	}
	return !strings.ContainsAny(s, " \t\n") && strings.ContainsAny(s, `/\`)
}

// modelIn returns the model in a folder: its GGUF file, which has a name of its own, or the folder
// itself where that is the model.
func modelIn(dir string) (modelPath, error) {
	path, err := checkpoint.Find(vfs.OS(), dir)
	if err != nil {
		return "", err
	}
	if strings.EqualFold(filepath.Ext(path), ".gguf") {
		return modelPath(path), nil
	}
	return modelPath(dir), nil
}
