package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// home returns a path under the user's home folder, or "" if there is none.
func (s *session) home(parts ...string) string {
	for _, key := range []string{"HOME", "USERPROFILE"} {
		if dir, ok := s.getenv(key); ok && dir != "" {
			return filepath.Join(append([]string{dir}, parts...)...)
		}
	}
	return ""
}

// fromEnv returns the value of an environment variable plus rest, or the fallback.
func (s *session) fromEnv(key, fallback string, rest ...string) string {
	if v, ok := s.getenv(key); ok && v != "" {
		return filepath.Join(append([]string{v}, rest...)...)
	}
	return fallback
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// huggingFace returns the snapshot of owner/name that the Hugging Face cache calls main.
func (s *session) huggingFace(name string) (string, bool) {
	root := s.fromEnv("HF_HUB_CACHE", s.fromEnv("HF_HOME", s.home(".cache", "huggingface", "hub"), "hub"))
	if root == "" || !strings.Contains(name, "/") || strings.Contains(name, ":") {
		return "", false
	}
	repo := filepath.Join(root, "models--"+strings.ReplaceAll(name, "/", "--"))
	const longest = 256
	revision, err := os.ReadFile(filepath.Join(repo, "refs", "main"))
	if err != nil || len(revision) > longest {
		return "", false
	}
	dir := filepath.Join(repo, "snapshots", filepath.Base(strings.TrimSpace(string(revision))))
	return dir, isDir(dir)
}

// lmStudio returns the folder of owner/name among LM Studio's models.
func (s *session) lmStudio(name string) (string, bool) {
	if !strings.Contains(name, "/") || strings.Contains(name, ":") {
		return "", false
	}
	for _, root := range []string{s.home(".lmstudio", "models"), s.home(".cache", "lm-studio", "models")} {
		if dir := filepath.Join(root, filepath.FromSlash(name)); root != "" && isDir(dir) {
			return dir, true
		}
	}
	return "", false
}

// ollama returns the weights file of name, name:tag or owner/name:tag in Ollama's store.
func (s *session) ollama(name string) (string, bool) {
	root := s.fromEnv("OLLAMA_MODELS", s.home(".ollama", "models"))
	if root == "" {
		return "", false
	}
	name, tag, ok := strings.Cut(name, ":")
	if !ok {
		tag = "latest"
	}
	if !strings.Contains(name, "/") {
		name = "library/" + name
	}
	f, err := os.Open(filepath.Join(root, "manifests", "registry.ollama.ai", filepath.FromSlash(name), tag))
	if err != nil {
		return "", false
	}
	defer f.Close()
	return ollamaWeights(f, root)
}

// ollamaWeights reads a manifest and returns the path of the layer that holds the weights.
func ollamaWeights(r io.Reader, root string) (string, bool) {
	var manifest struct {
		Layers []struct {
			MediaType string `json:"mediaType"`
			Digest    string `json:"digest"`
		} `json:"layers"`
	}
	const longest = 64 << 10
	data, err := io.ReadAll(io.LimitReader(r, longest))
	if err != nil || json.Unmarshal(data, &manifest) != nil {
		return "", false
	}
	for _, l := range manifest.Layers {
		if l.MediaType != "application/vnd.ollama.image.model" {
			continue
		}
		path := filepath.Join(root, "blobs", filepath.Base(strings.Replace(l.Digest, ":", "-", 1)))
		_, err := os.Stat(path)
		return path, err == nil
	}
	return "", false
}
