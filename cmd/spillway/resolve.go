package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/pack"
	"github.com/spillway/spillway/internal/hub"
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
		return "", fmt.Errorf("%.200q is neither a file nor a folder nor a known name (%s, or one that spillway list shows; spillway pull fetches others)", name, embeddedName)
	}
	return path, err
}

// find returns the model that name names: a file, a folder, the embedded model, or a model that
// some tool has fetched; errNoModel if it is none of these. A short name that Spillway knows is fetched.
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
	}
	m, err := s.hub().Find(name)
	if errors.Is(err, hub.ErrUnknown) && hub.Known(name) {
		m, err = s.pull(name)
	}
	if errors.Is(err, hub.ErrUnknown) {
		return "", errNoModel
	}
	if err != nil {
		return "", err
	}
	if isDir(m.Path) {
		return modelIn(m.Path)
	}
	return modelPath(m.Path), nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// looksLikePath tells a mistyped path from a prompt.
func looksLikePath(s string) bool {
	for _, end := range []string{".gguf", ".safetensors", ".json", pack.Extension} {
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
	if isModelFile(path) {
		return modelPath(path), nil
	}
	return modelPath(dir), nil
}

// isModelFile reports whether a file is a model by itself: its tokenizer and templates lie inside.
func isModelFile(path string) bool {
	ext := filepath.Ext(path)
	return strings.EqualFold(ext, ".gguf") || strings.EqualFold(ext, pack.Extension)
}
