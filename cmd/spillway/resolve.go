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

// modelIn returns the model in a folder: the folder itself in Hugging Face layout, else its one
// GGUF file, or the first of its one set of shards.
func modelIn(dir string) (modelPath, error) {
	if _, err := os.Stat(filepath.Join(dir, "config.json")); err == nil {
		return modelPath(dir), nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		name := e.Name()
		if !strings.EqualFold(filepath.Ext(name), ".gguf") || strings.HasPrefix(name, "mmproj") {
			continue
		}
		if shard := shardForm().FindStringSubmatch(name); shard == nil || strings.Trim(shard[1], "0") == "1" {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("the folder %s has neither a config.json nor a GGUF file", dir)
	case 1:
		return modelPath(filepath.Join(dir, found[0])), nil
	}
	return "", fmt.Errorf("the folder %s has %d models; name one of %s", dir, len(found), strings.Join(found, ", "))
}

var shardForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-(\d{5})-of-\d{5}\.gguf$`)
})
