package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// maxConfig is how much of a configuration file is read.
const maxConfig = 64 << 10

// settings gives the global flags that the command line leaves open their values: from the
// environment, else from the configuration file.
type settings struct {
	getenv func(string) (string, bool)
	file   map[string]any // of the configuration file, by the flags' names
}

var globalNames = []string{"memory", "context", "threads", "exact", "json", "quiet", "verbose"}

// Validate is part of kong.Resolver.
func (s *settings) Validate(*kong.Application) error { return nil }

// Resolve is part of kong.Resolver.
func (s *settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !slices.Contains(globalNames, flag.Name) {
		return nil, nil
	}
	if v, ok := s.getenv("SPILLWAY_" + strings.ToUpper(flag.Name)); ok {
		return v, nil
	}
	if v, ok := s.file[flag.Name]; ok {
		return fmt.Sprint(v), nil
	}
	return nil, nil
}

// load reads the file that --config or SPILLWAY_CONFIG names, if one does.
func (s *settings) load(context *kong.Context) error {
	path, _ := s.getenv("SPILLWAY_CONFIG")
	for _, p := range context.Path {
		if p.Flag != nil && p.Flag.Name == "config" {
			path = context.FlagValue(p.Flag).(string)
		}
	}
	if path == "" {
		return nil
	}
	data, err := readConfig(path)
	if err != nil {
		return fmt.Errorf("configuration file: %w", err)
	}
	if err := yaml.Unmarshal(data, &s.file); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("configuration file %s: %s", path, yaml.FormatError(err, false, false))
	}
	for key, value := range s.file {
		if !slices.Contains(globalNames, key) {
			return fmt.Errorf("configuration file %s: unknown key %q; there are %s", path, key, strings.Join(globalNames, ", "))
		}
		switch value.(type) {
		case map[string]any, []any, nil:
			return fmt.Errorf("configuration file %s: %s needs a value such as --%s takes", path, key, key)
		}
	}
	return nil
}

func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(data) > maxConfig {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxConfig)
	}
	return data, err
}
