package main

import (
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/storyteller"
	"github.com/spillway/spillway/internal/vfs"
)

// catalog opens a MODEL argument for commands that do not run it.
func (s *session) catalog(model string) (*checkpoint.Catalog, error) {
	path, err := s.resolve(model)
	if err != nil {
		return nil, err
	}
	return path.catalog()
}

// catalog opens the model; the empty path is the embedded one.
func (path modelPath) catalog() (*checkpoint.Catalog, error) {
	if path == "" {
		return checkpoint.OpenFile(storyteller.File())
	}
	return checkpoint.Open(vfs.OS(), string(path))
}
