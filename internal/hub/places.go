package hub

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func shortNames() []string { return slices.Sorted(maps.Keys(known)) }

// store is the folder of models that have no store of another tool's: SPILLWAY_STORE, else ~/.spillway/models.
func (h *Hub) store() string { return h.env("SPILLWAY_STORE", h.home(".spillway", "models")) }

func (h *Hub) huggingFaceRoot() string {
	return h.env("HF_HUB_CACHE", h.env("HF_HOME", h.home(".cache", "huggingface", "hub"), "hub"))
}

func (h *Hub) ollamaRoot() string { return h.env("OLLAMA_MODELS", h.home(".ollama", "models")) }

func (h *Hub) lmStudioRoots() []string {
	return []string{h.home(".lmstudio", "models"), h.home(".cache", "lm-studio", "models")}
}

// Find returns the model of that name in the local store, the Hugging Face cache, LM Studio's or Ollama's folder,
// in this order; ErrUnknown if none has it.
func (h *Hub) Find(name string) (*Model, error) {
	if !IsName(name) {
		return nil, ErrUnknown
	}
	for _, place := range []func(string) (*Model, bool){h.inStore, h.inHuggingFace, h.inLMStudio, h.inOllama} {
		if m, ok := place(name); ok {
			return m, nil
		}
	}
	return nil, ErrUnknown
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (h *Hub) inStore(name string) (*Model, bool) {
	root := h.store()
	dir := filepath.Join(root, strings.ToLower(name))
	if root == "" || strings.ContainsAny(name, "/:") || !isDir(dir) {
		return nil, false
	}
	return &Model{Name: strings.ToLower(name), Source: SourceStore, Path: dir, Bytes: treeBytes(dir)}, true
}

// inHuggingFace finds the snapshot of owner/name that the cache calls main, or the GGUF file in it that :QUANT picks.
func (h *Hub) inHuggingFace(name string) (*Model, bool) {
	repo, pick, picked := strings.Cut(name, ":")
	root := h.huggingFaceRoot()
	if root == "" || !strings.Contains(repo, "/") {
		return nil, false
	}
	dir, ok := snapshot(filepath.Join(root, folderOf(repo)))
	if !ok {
		return nil, false
	}
	m := &Model{Name: name, Source: SourceHuggingFace, Path: dir, Bytes: treeBytes(dir)}
	if picked {
		file, err := chooseGGUF(filesIn(dir), pick)
		if err != nil {
			return nil, false
		}
		m.Path = filepath.Join(dir, filepath.FromSlash(file))
	}
	return m, true
}

// folderOf is a repository's folder in the cache.
func folderOf(repo string) string { return "models--" + strings.ReplaceAll(repo, "/", "--") }

// longestRef bounds the name of a revision.
const longestRef = 256

// snapshot is the folder of the revision that the cache calls main.
func snapshot(repo string) (string, bool) {
	revision, err := os.ReadFile(filepath.Join(repo, "refs", "main"))
	if err != nil || len(revision) > longestRef {
		return "", false
	}
	dir := filepath.Join(repo, "snapshots", filepath.Base(strings.TrimSpace(string(revision))))
	return dir, isDir(dir)
}

func (h *Hub) inLMStudio(name string) (*Model, bool) {
	if !strings.Contains(name, "/") || strings.Contains(name, ":") {
		return nil, false
	}
	for _, root := range h.lmStudioRoots() {
		if dir := filepath.Join(root, filepath.FromSlash(name)); root != "" && isDir(dir) {
			return &Model{Name: name, Source: SourceLMStudio, Path: dir, Bytes: treeBytes(dir)}, true
		}
	}
	return nil, false
}

// inOllama finds the weights of name, name:tag or owner/name:tag.
func (h *Hub) inOllama(name string) (*Model, bool) {
	root := h.ollamaRoot()
	if root == "" {
		return nil, false
	}
	ref := parseOllama(name)
	f, err := os.Open(filepath.Join(root, ref.manifest()))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	m, err := readManifest(f)
	if err != nil {
		return nil, false
	}
	for _, l := range m.Layers {
		if l.MediaType == ollamaModel {
			path := filepath.Join(root, "blobs", l.blob())
			info, err := os.Stat(path)
			if err != nil {
				return nil, false
			}
			return &Model{Name: name, Source: SourceOllama, Path: path, Bytes: info.Size()}, true
		}
	}
	return nil, false
}

// List returns the models of all stores, by source and name.
func (h *Hub) List() []Model {
	var all []Model
	add := func(m *Model, ok bool) {
		if ok {
			all = append(all, *m)
		}
	}
	for _, name := range namesIn(h.store()) {
		add(h.inStore(name))
	}
	for _, folder := range namesIn(h.huggingFaceRoot()) {
		if rest, ok := strings.CutPrefix(folder, "models--"); ok {
			add(h.inHuggingFace(strings.Replace(rest, "--", "/", 1)))
		}
	}
	for _, root := range h.lmStudioRoots() {
		for _, owner := range namesIn(root) {
			for _, name := range namesIn(filepath.Join(root, owner)) {
				add(h.inLMStudio(owner + "/" + name))
			}
		}
	}
	for _, name := range h.ollamaNames() {
		add(h.inOllama(name))
	}
	slices.SortStableFunc(all, func(a, b Model) int { return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name)) })
	return slices.CompactFunc(all, func(a, b Model) bool { return a.Path == b.Path && a.Name == b.Name })
}

// namesIn lists a folder's entries that can be part of a model's name; none if there is no such folder.
func namesIn(dir string) (names []string) {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// treeBytes is the size of the files in a folder, links followed.
func treeBytes(dir string) (n int64) {
	for _, file := range filesIn(dir) {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(file))); err == nil {
			n += info.Size()
		}
	}
	return n
}

// filesIn lists the files below a folder, with slashes.
func filesIn(dir string) (files []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if rel, err := filepath.Rel(dir, path); err == nil {
				files = append(files, filepath.ToSlash(rel))
			}
		}
		return nil
	})
	return files
}

// Remove deletes a model from the local store, the Hugging Face cache or Ollama's store. Blobs of Ollama's
// that other models use stay.
func (h *Hub) Remove(name string) (*Model, error) {
	m, err := h.Find(name)
	if err != nil {
		return nil, fmt.Errorf("%.200q: %w", name, err)
	}
	switch m.Source {
	case SourceStore:
		return m, os.RemoveAll(m.Path)
	case SourceHuggingFace:
		repo, _, _ := strings.Cut(name, ":")
		return m, os.RemoveAll(filepath.Join(h.huggingFaceRoot(), folderOf(repo)))
	case SourceOllama:
		return m, h.removeOllama(name)
	}
	return nil, fmt.Errorf("%.200q lies in the store of %s (%s), which manages it: remove it there", name, m.Source, m.Path)
}

// maxJSON bounds what is read of a manifest or of an answer of a hub.
const maxJSON = 16 << 20

func readJSON(r io.Reader, into any) error {
	data, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	switch {
	case err != nil:
		return err
	case len(data) > maxJSON:
		return errors.New("the answer is longer than any list of files")
	}
	return json.Unmarshal(data, into)
}
