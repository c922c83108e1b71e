package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/spillway/spillway/internal/kernel"
)

// maxConfig is how much of a configuration file is read.
const maxConfig = 64 << 10

// settings gives the global flags that the command line leaves open their values: from the
// environment, else from the configuration file.
type settings struct {
	getenv  func(string) (string, bool)
	environ func() []string
	file    map[string]string // of the configuration file, by the flags' names
	origins origins
}

// origins say where the values of flags are from that the command line leaves open.
type origins map[string]string

// of is a remark on where a flag's value is from, if not from the command line.
func (o origins) of(flag string) string {
	if from := o[flag]; from != "" {
		return " (from " + from + ")"
	}
	return ""
}

var globalNames = []string{"memory", "context", "threads", "exact", "kv", "policy", "json", "quiet", "verbose"}

// Validate is part of kong.Resolver.
func (s *settings) Validate(*kong.Application) error { return nil }

// Resolve is part of kong.Resolver.
func (s *settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !slices.Contains(globalNames, flag.Name) {
		return nil, nil
	}
	if v, ok := s.getenv(envPrefix + strings.ToUpper(flag.Name)); ok {
		s.origins[flag.Name] = envPrefix + strings.ToUpper(flag.Name)
		return v, nil
	}
	if v, ok := s.file[flag.Name]; ok {
		s.origins[flag.Name] = "the configuration file"
		return v, nil
	}
	return nil, nil
}

// load reads the file that --config or SPILLWAY_CONFIG names, if one does.
func (s *settings) load(context *kong.Context) error {
	if err := s.checkEnvironment(); err != nil {
		return err
	}
	if set, _ := s.getenv(envPrefix + "CPU"); set != "" {
		if err := kernel.Use(strings.ToLower(set)); err != nil {
			return usagef("%sCPU: %w", envPrefix, err)
		}
	}
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
	if s.file, err = parseConfig(data); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	return nil
}

// parseConfig reads the flags' values from a YAML mapping. The parser alone does: the library's decoder
// would make the program a megabyte larger, which the memory of every run counts.
func parseConfig(data []byte) (map[string]string, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New(first)
	}
	values := map[string]string{}
	for i, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType {
			continue
		}
		entries, ok := doc.Body.(ast.MapNode)
		if !ok || i > 0 {
			return nil, errors.New("it should be one list of lines such as memory: 4GiB")
		}
		for m := entries.MapRange(); m.Next(); {
			if err := setConfig(values, m.Key().String(), m.Value()); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

func setConfig(values map[string]string, key string, node ast.Node) error {
	key = strings.Trim(key, `"'`)
	if !slices.Contains(globalNames, key) {
		return fmt.Errorf("unknown key %q; there are %s", key, strings.Join(globalNames, ", "))
	}
	if _, again := values[key]; again {
		return fmt.Errorf("%s is there twice", key)
	}
	value, ok := node.(ast.ScalarNode)
	if !ok || node.Type() == ast.NullType {
		return fmt.Errorf("%s needs a value such as --%s takes", key, key)
	}
	values[key] = fmt.Sprint(value.GetValue())
	return nil
}

const envPrefix = "SPILLWAY_"

// otherKeys are those of the environment that are no flags: which instructions are used, and where
// the project's tests find their material.
var otherKeys = []string{"CONFIG", "CPU", "MODELS", "SHARED", "BIG", "CAPTEST_HELPER"}

// checkEnvironment refuses a key that would be ignored.
func (s *settings) checkEnvironment() error {
	if s.environ == nil {
		return nil
	}
	known := slices.Clone(otherKeys)
	for _, name := range globalNames {
		known = append(known, strings.ToUpper(name))
	}
	for _, entry := range s.environ() {
		key, _, _ := strings.Cut(entry, "=")
		name, ours := strings.CutPrefix(key, envPrefix)
		if !ours || slices.Contains(known, name) {
			continue
		}
		near := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(distance(name, a), distance(name, b)) })
		return usagef("%s in the environment is unknown; did you mean %s%s?", visible(key, 80), envPrefix, near)
	}
	return nil
}

// distance counts the letters to add, drop or change (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
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
